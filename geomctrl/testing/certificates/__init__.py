"""Certificates of Lyapunov functions: equations of a closed loop, their enclosures, proofs and level sets."""
