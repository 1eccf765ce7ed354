"""Names from other libraries and their equivalent in geomctrl, for the messages of AttributeErrors.

Keys are names of Pinocchio, Drake, MuJoCo, the Robotics Toolbox and textbooks.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MASS, BIAS = "robot.mass_matrix(q)", "robot.inverse_dynamics(q, v, 0 * v)"
TERMS, POSE = "robot.terms(q, v), which has M, Mdot, C and g", 'robot.pose(q, "frame")'
JACOBIAN, RNEA, ABA = (
    'robot.jacobian(q, "frame")',
    "robot.inverse_dynamics(q, v, a)",
    "robot.forward_dynamics(q, v, tau)",
)
JACOBIAN_RATE, NULL = (
    'robot.jacobian_rate(q, v, "frame")',
    "geomctrl.operational_space.null_space_projector(robot, q, J)",
)
CENTROIDAL, COM = "robot.centroidal_momentum_matrix(q)", "robot.center_of_mass(q)"
MASS_INVERSE, RANDOM, NEUTRAL = "robot.mass_matrix_inverse(q)", "robot.random_configuration(rng)", "robot.neutral()"
DISTANCE, STEP = "robot.difference(q0, q1)", "robot.integrate(q, v)"
FRAMES, LIMITS = "robot.frame_names", "robot.limits, which has lower, upper, velocity and effort"
INVERSE_KINEMATICS, REGRESSOR = 'robot.inverse_kinematics({"frame": T})', "robot.regressor(q, v, a)"


def _each(names: str, text: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), text)


# attributes of a robot
ON_ROBOT = {
    # rigid-body algorithms by their abbreviations and by Pinocchio's names
    "crba": MASS, "rnea": RNEA, "aba": ABA, "nonLinearEffects": BIAS, "nle": BIAS, "bias": BIAS,
    "nonlinear_effects": BIAS, "bias_force": BIAS, "bias_forces": BIAS, "h": BIAS,
    "computeGeneralizedGravity": "robot.gravity_force(q)", "computeMinverse": MASS_INVERSE,
    "computeCoriolisMatrix": "robot.coriolis_matrix(q, v)", "computeJointTorqueRegressor": REGRESSOR,
    "computeRNEADerivatives": "robot.inverse_dynamics_derivatives(q, v, a)",
    "computeABADerivatives": "robot.forward_dynamics_derivatives(q, v, tau)",
    "computeFrameJacobian": JACOBIAN, "getFrameJacobian": JACOBIAN, "computeJointJacobian": JACOBIAN,
    "getFrameJacobianTimeVariation": JACOBIAN_RATE, "framesForwardKinematics": POSE, "framePlacement": POSE,
    "centerOfMass": COM, "ccrba": CENTROIDAL, "computeCentroidalMap": CENTROIDAL, "oMf": POSE, "oMi": POSE,
    "dccrba": "robot.centroidal_momentum_matrix_rate(q, v)", "getFrameId": "robot.frame(name)",
    "getJointId": "robot.joint(name)", "randomConfiguration": RANDOM, "nqs": "robot.q_slices",
    "njoints": "robot.nbodies", "nframes": FRAMES, "inertias": "robot.parameters", "names": "robot.joint_names",
    "lowerPositionLimit": LIMITS, "upperPositionLimit": LIMITS, "velocityLimit": LIMITS, "effortLimit": LIMITS,
    # Drake's
    "CalcMassMatrix": MASS, "CalcMassMatrixViaInverseDynamics": MASS, "CalcBiasTerm": BIAS,
    "CalcGravityGeneralizedForces": "-robot.gravity_force(q), with Drake's sign", "CalcInverseDynamics": RNEA,
    "CalcRelativeTransform": POSE, "EvalBodyPoseInWorld": POSE, "CalcJacobianSpatialVelocity": JACOBIAN,
    "CalcCenterOfMassPositionInWorld": COM, "num_positions": "robot.nq", "num_velocities": "robot.nv",
    "num_bodies": "robot.nbodies", "GetFrameByName": "robot.frame(name)", "GetJointByName": "robot.joint(name)",
    # MuJoCo's
    "mj_fullM": MASS, "qM": MASS, "qfrc_bias": BIAS, "qfrc_gravcomp": "robot.gravity_force(q)", "mj_inverse": RNEA,
    "mj_forward": ABA, "mj_jac": JACOBIAN, "mj_jacSite": JACOBIAN, "mj_jacBody": JACOBIAN, "mj_integratePos": STEP,
    "mj_differentiatePos": DISTANCE, "body_mass": "robot.parameters[:, 0]", "xpos": POSE, "site_xpos": POSE,
    # the Robotics Toolbox's
    "inertia": MASS, "gravload": "robot.gravity_force(q)", "fkine": POSE, "jacob0": JACOBIAN + ' with "hybrid"',
    "jacobe": JACOBIAN, "jacob_dot": JACOBIAN_RATE, "ikine": INVERSE_KINEMATICS, "ik": INVERSE_KINEMATICS,
    "ikine_LM": INVERSE_KINEMATICS, "accel": ABA, "qlim": LIMITS, "payload": "robot.with_payload(mass, com)",
    "n": "robot.nv", "dof": "robot.nv", "ndof": "robot.nv", "links": "robot.body_names", "qz": NEUTRAL, "qr": NEUTRAL,
    # textbooks'
    "M": MASS, "D": MASS, "H": MASS, "inertia_matrix": MASS, "mass": "robot.parameters[:, 0], a mass per body",
    "masses": "robot.parameters[:, 0]", "C": "robot.coriolis_matrix(q, v)", "coriolis": "robot.coriolis_matrix(q, v)",
    "centripetal": "robot.coriolis_matrix(q, v)", "g": "robot.gravity_force(q)", "G": "robot.gravity_force(q)",
    "gravity_vector": "robot.gravity_force(q)", "gravity_torque": "robot.gravity_force(q)", "dynamics": TERMS,
    "gravity_term": "robot.gravity_force(q)", "forward_kinematics": POSE, "fk": POSE, "transform": POSE,
    "geometric_jacobian": JACOBIAN, "J": JACOBIAN, "jacobian_dot": JACOBIAN_RATE, "jacobian_derivative": JACOBIAN_RATE,
    "Minv": MASS_INVERSE, "inverse_mass_matrix": MASS_INVERSE, "com": COM, "center_of_gravity": COM,
    "centre_of_mass": COM, "centroidal_map": CENTROIDAL, "hamiltonian": "robot.energy(q, v)",
    "total_energy": "robot.energy(q, v)", "lagrangian": "robot.kinetic_energy(q, v) - robot.potential_energy(q)",
    "random": RANDOM, "home": NEUTRAL, "q0": NEUTRAL, "zero": NEUTRAL, "num_joints": "robot.nv", "joint_limits": LIMITS,
    "acceleration": "robot.jacobian(q, frame) @ a + robot.jacobian_rate(q, v, frame) @ v", "null_space": NULL,
    "nullspace": NULL, "simulate": "geomctrl.simulate(robot, controller, q0, v0, ...) or geomctrl.rollout(robot, ...)",
    # functions in other modules
    "turning": "robot.is_rotational", "stiffness": "robot.springs.stiffness", "rest": "robot.springs.rest",
    **_each("dynamically_consistent_inverse null_space_projector", "geomctrl.operational_space.{name}(robot, q, J)"),
    "operational_inertia": 'geomctrl.operational_space.inertia(robot, q, "frame")',
    "operational_mobility": 'geomctrl.operational_space.mobility(robot, q, "frame")',
    **_each("christoffel_symbols riemann_curvature ricci_curvature scalar_curvature",
            "geomctrl.papers.curvature.{name}(robot, q)"),
    **_each("momentum_regressor momentum_rate_regressor", "geomctrl.derivatives.{name}(robot, q, v)"),
    "inverse_dynamics_second_derivatives": "geomctrl.derivatives.inverse_dynamics_second_derivatives(robot, q, v, a)",
    "geometric_sensitivity": "geomctrl.papers.sensitivities.geometric_sensitivity(robot, q, v, a)",
    "forward_dynamics_second_derivatives": "geomctrl.derivatives.forward_dynamics_second_derivatives(robot, q, v, tau)",
    "mass_matrix_derivative": "geomctrl.derivatives.mass_matrix_derivative(robot, q)",
    "inverse_dynamics_rates": "geomctrl.derivatives.inverse_dynamics_rates(robot, q, rates)",
    **_each("jerk twist_derivatives jacobian_derivatives",
            "geomctrl.papers.higher_order_kinematics.{name}(robot, ...)"),
}  # fmt: skip

# names of the package
ON_PACKAGE = {
    **_each("buildModelFromUrdf loadURDF read_urdf from_urdf urdf URDF Parser", "geomctrl.load_urdf(path)"),
    **_each("MjModel from_xml_path from_mjcf mjcf MJCF", "geomctrl.load_mjcf(path)"),
    **_each("buildModelFromMJCF load_xml", "geomctrl.load_mjcf(path)"),
    **_each("load load_model load_robot robots", "geomctrl.models.load(name) or geomctrl.load_urdf(path)"),
    **_each("panda puma560 two_link ur10", "geomctrl.models.{name}()"),
    **_each("DHRobot SerialLink DHLink from_dh", "geomctrl.Robot.from_dh(a, alpha, d, theta, ...)"),
    **_each("ERobot Model MultibodyPlant Mechanism RobotWrapper", "geomctrl.Robot"),
    **_each("Link RigidBody", "geomctrl.Body"),
    **_each("crba rnea aba forward_kinematics fkine coriolis mass_matrix jacobian",
            "a method of geomctrl.Robot: {method}"),
    **_each("inverse_dynamics forward_dynamics gravity_force inverse_kinematics",
            "a method of geomctrl.Robot: robot.{name}(...)"),
    **_each("SE3 exp6 log6", "geomctrl.se3, functions of 4x4 arrays"),
    **_each("SO3 exp3 log3", "geomctrl.so3, functions of 3x3 arrays"),
    **_each("Simulator run closed_loop feedback", "geomctrl.simulate(plant, controller, ...)"),
    **_each("solve_ivp odeint integrate", "geomctrl.integrators.integrate(...) or geomctrl.rollout(robot, ...)"),
    **_each("PDGravity ComputedTorque SlotineLi LQR Passivity", "geomctrl.controllers.{name}"),
    **_each("identify Dataset base_parameters", "geomctrl.identification.{name}"),
    **_each("assert_lyapunov certify certify_lyapunov assert_skew_symmetric", "geomctrl.testing.{name}"),
    **_each("Actuator", "geomctrl.actuators.{name}"),
    **_each("Encoder Sensor", "geomctrl.sensors.{name}"),
    **_each("Trajectory Quintic trajectory", "geomctrl.references"),
    **_each("viz show plot viewer Meshcat MeshcatVisualizer",
            "geomctrl.LiveView while it runs, run.plot() and run.animate() afterwards"),
    **_each("closed_forms curvature factored one_body representations", "geomctrl.papers.{name}"),
}  # fmt: skip


def missing_attribute(owner: str, name: str, table: dict[str, str], public: Iterable[str]) -> str:
    """Message of an AttributeError: the equivalent in geomctrl, or similar names."""
    message = f"{owner} has no attribute {name!r}"
    if name in table:
        method = ON_ROBOT.get(name, f"robot.{name}(...)")
        return f"{message}; use {table[name].replace('{name}', name).replace('{method}', method)}"
    lowered = {other.lower(): other for other in public}
    near = difflib.get_close_matches(name.lower(), lowered, n=3)
    return f"{message}; did you mean {', '.join(lowered[x] for x in near)}?" if near else message
