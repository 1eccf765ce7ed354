"""Rigorous enclosures of all motions of a closed loop from a box of initial states."""
