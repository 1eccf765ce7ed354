"""The regressor of a robot: parameters, friction curves, user-defined columns, and logs compressed to factors."""
