"""The equations on scalars and tuples: plain functions that know the model array and nothing else."""
