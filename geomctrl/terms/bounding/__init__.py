"""Implementation of `terms.bounds`: constants that stability theorems need."""
