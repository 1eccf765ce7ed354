"""The equations of rigid-body dynamics on scalars and tuples, as plain functions of a robot's packed array."""
