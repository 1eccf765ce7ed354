"""Proofs and searches behind `terms.bounds`: constants of M, C and g that stability theorems need."""
