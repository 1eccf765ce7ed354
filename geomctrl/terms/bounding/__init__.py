"""The constants that theorems assume of a robot: how `terms.bounds` finds them."""
