"""The constants that theorems assume of a robot: closed forms, certificates and branch and bound. See `terms.bounds`."""
