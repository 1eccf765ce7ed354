"""Names from other libraries and their equivalent in geomctrl, for messages about unknown attributes and arguments.

Keys are names of Pinocchio, Drake, MuJoCo, the Robotics Toolbox and textbooks.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
NO_TABLE: Mapping[str, str] = MappingProxyType({})

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
    "getJointId": "robot.joint(name)", "forwardKinematics": POSE, "computeAllTerms": TERMS, "Ag": CENTROIDAL,
    "frame_placement": POSE, "frame_pose": POSE, "frame_jacobian": JACOBIAN, "frame_velocity": JACOBIAN + " @ v",
    "rotor_inertia": "robot.armature", "random_state": RANDOM, "randomConfiguration": RANDOM, "nqs": "robot.q_slices",
    "njoints": "robot.nbodies", "nframes": FRAMES, "inertias": "robot.parameters", "names": "robot.joint_names",
    "lowerPositionLimit": LIMITS, "upperPositionLimit": LIMITS, "velocityLimit": LIMITS, "effortLimit": LIMITS,
    # Drake's
    "CalcMassMatrix": MASS, "CalcMassMatrixViaInverseDynamics": MASS,
    "CalcBiasTerm": "robot.coriolis_matrix(q, v) @ v, without gravity as Drake's",
    "CalcGravityGeneralizedForces": "-robot.gravity_force(q), with Drake's sign",
    "CalcInverseDynamics": RNEA + ", which includes gravity",
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
    "gravity_term": "robot.gravity_force(q)", "generalized_gravity": "robot.gravity_force(q)",
    "forward_kinematics": POSE, "fk": POSE, "transform": POSE,
    "geometric_jacobian": JACOBIAN, "J": JACOBIAN, "jacobian_dot": JACOBIAN_RATE, "jacobian_derivative": JACOBIAN_RATE,
    "Minv": MASS_INVERSE, "inverse_mass_matrix": MASS_INVERSE, "com": COM, "center_of_gravity": COM,
    "centre_of_mass": COM, "centroidal_map": CENTROIDAL, "hamiltonian": "robot.energy(q, v)",
    "total_energy": "robot.energy(q, v)", "lagrangian": "robot.kinetic_energy(q, v) - robot.potential_energy(q)",
    "random": RANDOM, "home": NEUTRAL, "q0": NEUTRAL, "zero": NEUTRAL, "num_joints": "robot.nv", "joint_limits": LIMITS,
    "acceleration": "robot.jacobian(q, frame) @ a + robot.jacobian_rate(q, v, frame) @ v", "null_space": NULL,
    "nullspace": NULL, "manipulability": JACOBIAN + ", J, and numpy.sqrt(numpy.linalg.det(J @ J.T))",
    "total_mass": "robot.parameters[:, 0].sum()", "neutral_configuration": NEUTRAL,
    **_each("end_effector ee tip tool tcp link_names", FRAMES),
    **_each("lower_position_limit upper_position_limit lower_limits upper_limits torque_limits lower upper "
            "effort_limit effort_limits velocity_limit velocity_limits position_limits", LIMITS),
    **_each("add_payload with_load attach add_load", "robot.with_payload(mass, com)"),
    "base_parameters": "geomctrl.identification.base_parameters(robot)",
    "state_space": "geomctrl.interop.state_space(robot, q, v, tau)",
    "simulate": "geomctrl.simulate(robot, controller, q0, v0, ...) or geomctrl.rollout(robot, ...)",
    # functions in other modules
    "tree": "robot.coupling.tree",
    "linearize": "geomctrl.derivatives.linearize(robot, q, v, tau)",
    "linearise": "geomctrl.derivatives.linearize(robot, q, v, tau)",
    "coriolis_transpose_product": "geomctrl.derivatives.coriolis_transpose_product(robot, q, v, x)",
    "to_ptx": 'geomctrl.interop.to_ptx(robot, path, "inverse_dynamics")',
    "turning": "robot.is_rotational", "stiffness": "robot.springs.stiffness", "rest": "robot.springs.rest",
    **_each("dynamically_consistent_inverse null_space_projector", "geomctrl.operational_space.{name}(robot, q, J)"),
    "operational_inertia": 'geomctrl.operational_space.inertia(robot, q, "frame")',
    "operational_mobility": 'geomctrl.operational_space.mobility(robot, q, "frame")',
    **_each("christoffel_symbols riemann_curvature ricci_curvature scalar_curvature",
            "geomctrl.papers.curvature.{name}(robot, q)"),
    "inverse_dynamics_second_derivatives": "geomctrl.derivatives.inverse_dynamics_second_derivatives(robot, q, v, a)",
    **_each("to_pinocchio to_mujoco", "geomctrl.interop.{name}_model(robot)"), "from_mjcf": "geomctrl.load_mjcf(path)",
    "geometric_sensitivity": "geomctrl.papers.sensitivities.geometric_sensitivity(robot, q, v, a)",
    "forward_dynamics_second_derivatives": "geomctrl.derivatives.forward_dynamics_second_derivatives(robot, q, v, tau)",
    "mass_matrix_derivative": "geomctrl.derivatives.mass_matrix_derivative(robot, q)",
    "inverse_dynamics_rates": "geomctrl.derivatives.inverse_dynamics_rates(robot, q, rates)",
    **_each("jerk twist_derivatives jacobian_derivatives",
            "geomctrl.papers.higher_order_kinematics.{name}(robot, ...)"),
}  # fmt: skip

# names of the package; names of its modules are found without a table
ON_PACKAGE = {
    **_each("buildModelFromUrdf loadURDF read_urdf from_urdf urdf URDF Parser", "geomctrl.load_urdf(path)"),
    **_each("MjModel from_xml_path from_mjcf mjcf MJCF", "geomctrl.load_mjcf(path)"),
    **_each("buildModelFromMJCF load_xml", "geomctrl.load_mjcf(path)"),
    "constrained": "geomctrl.papers.constrained",
    **_each("from_pinocchio from_mujoco", "geomctrl.Robot.{name}(model)"),
    **_each("to_pinocchio to_mujoco", "geomctrl.interop.{name}_model(robot)"),
    **_each("load load_model load_robot robots", "geomctrl.models.load(name) or geomctrl.load_urdf(path)"),
    **_each("DHRobot SerialLink DHLink from_dh", "geomctrl.Robot.from_dh(a, alpha, d, theta, ...)"),
    **_each("ERobot Model RobotModel MultibodyPlant Mechanism RobotWrapper", "geomctrl.Robot"),
    **_each("Link RigidBody", "geomctrl.Body"),
    **_each("crba rnea aba forward_kinematics fkine coriolis mass_matrix jacobian",
            "a method of geomctrl.Robot: {method}"),
    **_each("inverse_dynamics forward_dynamics gravity_force inverse_kinematics",
            "a method of geomctrl.Robot: robot.{name}(...)"),
    **_each("SE3 exp6 log6", "geomctrl.se3, whose methods take 4x4 arrays"),
    **_each("SO3 exp3 log3", "geomctrl.so3, whose methods take 3x3 arrays"),
    **_each("Simulator Simulation run closed_loop feedback", "geomctrl.simulate(plant, controller, ...)"),
    **_each("solve_ivp odeint integrate rk4", "geomctrl.integrators.integrate(...) or geomctrl.rollout(robot, ...)"),
    **_each("Trajectory trajectory", "geomctrl.references, for example geomctrl.references.Quintic"),
    **_each("PiecewisePolynomial waypoints", "geomctrl.references.Spline(robot, times, waypoints)"),
    **_each("LeafSystem VectorSystem", "a function or an object with the rules of geomctrl.Controller"),
    "RegionOfAttraction": "geomctrl.testing.region_of_attraction(controller, plant, box)",
    **_each("export_c to_c codegen", "geomctrl.compile(controller).to_c(folder); of a robot, robot.to_c(folder)"),
    **_each("MonteCarlo monte_carlo grid gridsearch", "geomctrl.sweep(make, space, measures, t_end, dt)"),
    **_each("jax torch casadi", 'a function of geomctrl.Robot: robot.to_{name}("inverse_dynamics")'),
    **_each("gym gymnasium", "geomctrl.interop.gymnasium_env(plant, reference, ...)"),
    **_each("ros ros2 rosbag", "geomctrl.identification.Dataset.read(path) of a bag; run.to_mcap(path) writes one"),
    **_each("viz show plot viewer Meshcat MeshcatVisualizer",
            "geomctrl.LiveView while it runs, run.plot() and run.animate() afterwards"),
}  # fmt: skip

# names of the modules of the package
PD, FROM_FILE = (
    "geomctrl.controllers.PDGravity(robot, q_d, kp, kd)",
    "geomctrl.load_urdf(path) with a file of this robot",
)
ON_MODULE = {
    "controllers": {
        **_each("PD pd PDController PDControl GravityCompensation JointPD", PD),
        **_each("ComputedTorqueControl ComputedTorqueController CTC InverseDynamics InverseDynamicsControl "
                "FeedbackLinearization", "geomctrl.controllers.ComputedTorque(robot, reference, kp, kd)"),
        **_each("Impedance ImpedanceControl Admittance Compliance",
                "geomctrl.controllers.CartesianImpedance of a frame, or geomctrl.controllers.JointImpedance"),
        **_each("OSC TaskSpace TaskSpaceControl TaskSpaceController OperationalSpaceControl Cartesian "
                "CartesianControl", "geomctrl.controllers.OperationalSpace(robot, reference, frame)"),
        **_each("Adaptive AdaptiveControl SlotineLiAdaptive", "geomctrl.controllers.SlotineLi(robot, reference)"),
        **_each("SlidingMode SlidingModeControl SMC",
                "geomctrl.controllers.Robust or geomctrl.controllers.SuperTwisting"),
        **_each("Quadrotor QuadrotorControl GeometricController GeometricTracking Lee",
                "geomctrl.controllers.QuadrotorTracking(robot, reference)"),
        **_each("QP WBC WholeBody WholeBodyControl CBF", "geomctrl.controllers.QPInverseDynamics(robot, reference)"),
        **_each("EnergyShaping", "geomctrl.controllers.SwingUp(robot, q_d, actuated)"),
        **_each("MPC PID pid", "your own class, which follows the rules of geomctrl.Controller"),
    },
    "models": {
        **_each("franka franka_panda panda_arm fr3", "geomctrl.models.panda()"),
        **_each("ur3 ur5 ur5e ur10e kuka iiwa humanoid atlas talos go1 anymal", FROM_FILE),
        **_each("double_pendulum acrobot planar_2r", "geomctrl.models.two_link()"),
        **_each("pendulum", "geomctrl.Robot.build([geomctrl.Body(...)])"),
        **_each("drone quadcopter", "geomctrl.models.quadrotor()"),
        **_each("list available robots list_models", "geomctrl.models.names()"),
    },
    "references": {
        **_each("constant setpoint set_point fixed regulation", "geomctrl.references.hold(robot, q)"),
        **_each("MinJerk MinimumJerk minimum_jerk Polynomial Trapezoid Trapezoidal quintic_trajectory",
                "geomctrl.references.Quintic(robot, q0, q1, duration)"),
        **_each("sin sine Sine Circle Fourier", "geomctrl.references.Sinusoids(robot, q0, amplitude, frequency)"),
        **_each("CubicSpline Waypoints waypoints", "geomctrl.references.Spline"),
    },
    "actuators": {
        **_each("TorqueLimit TorqueLimits EffortLimits torque_limit torque_limits Limits Limit Saturate Clip",
                "geomctrl.actuators.Saturation(upper)"),
        **_each("Delay TimeDelay", "geomctrl.actuators.TransportDelay(delay)"),
        **_each("LowPass FirstOrder FirstOrderLag", "geomctrl.actuators.Lag(time_constant)"),
        **_each("Motor MotorModel ElectricMotor", "geomctrl.actuators.DCMotor or geomctrl.actuators.CurrentDrive"),
        **_each("Gear Gearbox Transmission", "geomctrl.Joint.with_motor(rotor, gear_ratio)"),
        **_each("SEA SeriesElastic SeriesElasticActuator Backlash",
                "geomctrl.actuators.SeriesElasticity(stiffness, rotor)"),
    },
    "sensors": {
        **_each("Noise GaussianNoise PositionNoise JointEncoder Tachometer",
                "geomctrl.sensors.Encoder(bits, noise=...)"),
        **_each("Gyro Gyroscope Accelerometer", "geomctrl.sensors.IMU(frame)"),
        **_each("TorqueSensor JointTorqueSensor", "geomctrl.sensors.JointTorque"),
        **_each("FTSensor ForceTorque Camera", "your own subclass of geomctrl.sensors.Sensor"),
    },
    "testing": {
        **_each("assert_stable check_lyapunov verify_lyapunov falsify",
                "geomctrl.testing.assert_lyapunov(controller, plant)"),
        **_each("prove verify prove_lyapunov", "geomctrl.testing.certify_lyapunov(controller, plant, box)"),
    },
    "measures": _each("RMS rms RMSE TrackingError", "geomctrl.measures.TrackingRMS()"),
    "monitors": _each("Lyapunov LyapunovMonitor V", "geomctrl.monitors.LyapunovDecrease()"),
    "integrators": _each("RK4 rk4 RungeKutta Euler solve_ivp odeint", "geomctrl.integrators.methods()"),
    "interop": {
        "from_mujoco_model": "geomctrl.Robot.from_mujoco(model)",
        "from_pinocchio_model": "geomctrl.Robot.from_pinocchio(model)",
        **_each("to_gym gym gymnasium make_env GymEnv", "geomctrl.interop.gymnasium_env(plant, reference, ...)"),
        **_each("ros ros2 mcap", "geomctrl.Run.to_mcap(path)"),
        "signal_names": "the labels of geomctrl.interop.nonlinear_system(robot)",
    },
}  # fmt: skip

# attributes of a run
ON_RUN = {
    **_each("time times T", "run.t"), **_each("u torque torques control effort inputs", "run.tau"),
    **_each("positions position qpos joint_positions", "run.q"), **_each("qd dq velocities velocity qvel", "run.v"),
    **_each("state states trajectory data results", "run.t, run.q, run.v and run.tau, arrays with one row per sample"),
    **_each("y outputs measurements", "run.measured, by name"), "error": "run.tracking_error()",
    **_each("V lyapunov", 'run.signals["lyapunov"]'), "rms": "run.tracking_rms()",
    **_each("to_csv to_numpy write", "run.to_dataframe(); run.save(path) writes one .npz file"),
    **_each("show", "run.plot() or run.animate()"), "read": "geomctrl.Run.load(path)",
}  # fmt: skip

# arguments of functions
OF_OPTIONS = {
    **_each("method every strict compiled device precision", "options=geomctrl.SimulationOptions({name}=...)"),
    **_each("integrator solver", "options=geomctrl.SimulationOptions(method=...)"),
    **_each("tol rtol atol tolerance", "options=geomctrl.SimulationOptions(method=geomctrl.integrators.Adaptive(...))"),
}  # fmt: skip
OF_SWEEP = OF_OPTIONS | _each("executor block seed progress", "execution=geomctrl.SweepExecution({name}=...)")
OF_SIMULATE = {
    **OF_OPTIONS, **_each("tf T t_final t_span tspan duration horizon time", "t_end=..., in seconds"),
    **_each("h step timestep time_step", "dt=..., in seconds"), **_each("law control policy", "controller=..."),
    **_each("robot model", "plant=..., a robot or a geomctrl.Plant(robot, ...)"),
    **_each("x0 initial_state state0", "q0=... and v0=..."), **_each("q v", "{name}0=..."),
    **_each("sample_time control_period sampling_time", "control_dt=..., in seconds"),
    **_each("reference q_d desired", "the reference of the controller"),
    **_each("friction actuators sensors f_ext stops changes", "geomctrl.Plant(robot, {name}=...) as the plant"),
}  # fmt: skip
OF_PLANT = {
    **_each("torque_limits torque_limit effort_limits limits saturation max_torque",
            "actuators=geomctrl.actuators.Saturation(upper)"),
    **_each("delay latency", "actuators=geomctrl.actuators.TransportDelay(delay)"),
    **_each("motor motors drive drives", "actuators=geomctrl.actuators.DCMotor(...)"),
    **_each("actuator sensor", "{name}s=..."),
    **_each("bandwidth lag", "actuators=geomctrl.actuators.Lag(time_constant)"),
    **_each("elasticity joint_stiffness", "actuators=geomctrl.actuators.SeriesElasticity(stiffness, rotor)"),
    **_each("noise encoder measurement_noise", "sensors=geomctrl.sensors.Encoder(noise=...)"),
    **_each("damping viscous coulomb", "friction=geomctrl.Friction(viscous, coulomb)"),
    **_each("payload load mass", "geomctrl.Plant(robot.with_payload(mass, com))"),
    **_each("gravity", "geomctrl.Plant(robot.with_gravity(gravity))"),
    **_each("parameters armature", "geomctrl.Plant(robot.with_{name}({name}))"),
    **_each("wrench wrenches external_forces disturbance contact contacts",
            "f_ext=geomctrl.Wrench(...) or geomctrl.Contact(...)"),
}  # fmt: skip
OF_SIMULATION_OPTIONS = {
    **_each("integrator solver", "method=..."), **_each("save_every store_every decimation", "every=..."),
    **_each("tol rtol atol tolerance", "method=geomctrl.integrators.Adaptive(...)"), "gpu": 'device="cuda"',
    **_each("dt t_end control_dt monitors progress", "{name} of geomctrl.simulate"), "jit": "compiled=...",
}  # fmt: skip


def named_arguments(table: Mapping[str, str] = NO_TABLE) -> Callable[[F], F]:
    """Decorate a public function or class: a call with unknown or missing arguments raises ArgumentError.

    table: arguments of other libraries, and their equivalent here.
    """

    def decorate(function: F) -> F:
        if isinstance(function, type):
            function.__init__ = decorate(function.__init__)  # pyright: ignore[reportArgumentType]
            return function  # pyright: ignore[reportReturnType]

        @functools.wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            try:
                return function(*args, **options)
            except TypeError:
                explain_call(function, args, options, table)
                raise

        return checked  # pyright: ignore[reportReturnType]

    return decorate


def explain_call(function: Callable[..., Any], args: tuple, options: Mapping, table: Mapping = NO_TABLE) -> None:
    """Raise ArgumentError if the arguments do not fit the function's signature."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        from geomctrl.errors import ArgumentError  # this module imports nothing of geomctrl when it is loaded

        label = _label(function, args)
        message = _of_call(label, signature, args, options, table) or f"{label}: {error}"
        raise ArgumentError(message) from None


def _of_call(label: str, signature: inspect.Signature, args: tuple, options: Mapping, table: Mapping) -> str:
    """Message about the first argument of a call that does not fit; empty if none is at fault alone."""
    kinds = {p.kind for p in signature.parameters.values()}
    parameters = {
        name: p for name, p in signature.parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }
    bound = next(iter(parameters), "") in ("self", "cls", "robot" if label.startswith("geomctrl.Robot.") else "self")
    names = list(parameters)[bound:]
    unknown = [] if inspect.Parameter.VAR_KEYWORD in kinds else [x for x in options if x not in parameters]
    for name in unknown:
        near = _near(name, names, 1)
        hint = f"use {table[name].format(name=name)}" if name in table else f"expected {', '.join(names)}"
        if near and name not in table:
            hint = f"did you mean {near[0]}? It takes {', '.join(names)}"
        return f"{name}: {label} has no such argument; {hint}"
    by_position = [name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    if len(args) > len(by_position) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        count, got = len(by_position) - bound, len(args) - bound
        return f"{label}: expected at most {count} arguments by position, {', '.join(names[:count])}, got {got}"
    required = [name for name in names if parameters[name].default is inspect.Parameter.empty]
    missing = [name for name in required if name not in (*by_position[: len(args)], *options)]
    if missing:
        return f"{', '.join(missing)}: missing in the call of {label}; expected {', '.join(required)}"
    return ""


def _label(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """The public name of a function; of a private class's constructor, the name of the class that is constructed."""
    name = function.__qualname__.removesuffix(".__init__")
    if not function.__module__.startswith("geomctrl."):
        return name
    home = _home_of(name.partition(".")[0])
    if home is None and hasattr(importlib.import_module("geomctrl").Robot, name):
        return f"geomctrl.Robot.{name}"
    if home is None and function.__name__ == "__init__" and args:
        name = type(args[0]).__qualname__
        home = _home_of(name)
    return name if home is None else f"{home}.{name}"


def _near(name: str, public: Iterable[str], count: int) -> list[str]:
    lowered = {other.lower(): other for other in public if not other.startswith("_")}
    return [lowered[x] for x in difflib.get_close_matches(name.lower(), lowered, n=count)]


def missing_attribute(owner: str, name: str, table: dict[str, str], public: Iterable[str]) -> str:
    """Message of an AttributeError: the equivalent in geomctrl, or similar names."""
    message = f"{owner} has no attribute {name!r}"
    if name in table:
        method = ON_ROBOT.get(name, f"robot.{name}(...)")
        return f"{message}; use {table[name].replace('{name}', name).replace('{method}', method)}"
    near = _near(name, public, 3)
    return f"{message}; did you mean {', '.join(near)}?" if near else message


class UnknownName(AttributeError):
    """A name that a public module lacks: `UnknownName(module, name, public)`.

    The message is written when it is read, because it imports other modules, and `from package import file` makes
    Python ask the package for the name of every file first.
    """

    def __str__(self) -> str:
        module, name, public = self.args
        own = module.rpartition(".")[2]
        owner = f"module {'geomctrl' if own == 'geomctrl' else f'geomctrl.{own}'!r}"
        every = {other: text for table in ON_MODULE.values() for other, text in table.items()}
        table = every | ON_PACKAGE | ON_MODULE.get(own, {})
        if name not in table and not name.startswith("_") and (home := _home_of(name)):
            table = {name: f"{home}.{name}"}
        return missing_attribute(owner, name, table, public)


def _home_of(name: str) -> str | None:
    """The public module that has this name."""
    package = importlib.import_module("geomctrl")
    if name in package.__all__:
        return "geomctrl"
    return next((f"geomctrl.{x}" for x in package.MODULES if name in getattr(getattr(package, x), "__all__", ())), None)


def unknown_names(module: str, public: Iterable[str]) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a module whose other names are all unknown."""

    def __getattr__(name: str) -> NoReturn:
        raise UnknownName(module, name, tuple(public))

    return __getattr__
