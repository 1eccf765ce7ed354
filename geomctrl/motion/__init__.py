"""A robot that moves by itself: compiled rollouts and structure-preserving integrators."""
