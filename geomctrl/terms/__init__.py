"""Public functions of a robot: kinematics, dynamics, derivatives, regressors, bounds. They check their arguments."""
