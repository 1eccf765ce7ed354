"""Rigorous bounds of traced code: interval arithmetic, branch and bound, proofs that can be saved and checked again."""
