"""Simulate a robot without a controller: compiled rollouts and structure-preserving integrators."""
