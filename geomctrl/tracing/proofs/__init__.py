"""Rigorous bounds of traced code: interval arithmetic, branch and bound, and proofs that can be saved and rechecked."""
