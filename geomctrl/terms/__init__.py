"""Public functions of a mechanism: kinematics, dynamics, their derivatives; arguments are checked here, once."""
