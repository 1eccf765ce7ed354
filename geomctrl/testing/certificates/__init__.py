"""Certificates of Lyapunov functions: a closed loop's equations in forms that can be enclosed, proofs, level sets."""
