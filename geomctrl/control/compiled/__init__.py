"""Compilation of controllers and whole closed loops: symbolic copies of user objects, their traces, and execution."""
