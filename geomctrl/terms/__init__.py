"""Public functions of a robot, with checked arguments: kinematics, dynamics, derivatives, regressors, bounds."""
