"""The regressor of a robot: parameters, friction curves, columns of one's own, and logs compressed to factors."""
