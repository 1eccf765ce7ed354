"""Robot: a mechanism with the terms of its equations of motion as methods, one line a term."""

from geomctrl.mechanism import building, configuration
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms import (
    articulated,
    bounds,
    compiled,
    cuda,
    curvature,
    derivatives,
    dynamics,
    export,
    higher_order_kinematics,
    inverse_kinematics,
    kinematics,
    redundancy,
    regressor,
    time_derivatives,
    wrenches,
)


class Robot(Mechanism):
    """A tree of rigid bodies; frozen. Make one with `Robot.build`, `from_dh`, `from_screws` or `geomctrl.models`.

    Bodies are numbered parents first, as they were given where that was so too; else `renumbered` is True. A
    configuration q (nq,) holds, body by body, the coordinate of a joint with one degree of freedom or the relative pose
    [R | p] row by row (12 numbers) of a joint with more; a velocity v (nv,) holds the coordinates of the body-fixed
    relative twist in the joint's basis S. All terms take leading batch axes.
    """

    build = classmethod(building.build)
    from_dh = classmethod(building.from_dh)
    from_screws = classmethod(building.from_screws)
    with_parameters = building.with_parameters
    with_payload = building.with_payload
    with_armature = building.with_armature
    with_gravity = building.with_gravity

    neutral = configuration.neutral
    random_configuration = configuration.random_configuration
    integrate = configuration.integrate
    difference = configuration.difference

    pose = kinematics.pose
    inverse_kinematics = inverse_kinematics.inverse_kinematics
    jacobian = kinematics.jacobian
    jacobian_rate = kinematics.jacobian_rate
    body_wrenches = wrenches.body_wrenches
    jacobian_derivatives = higher_order_kinematics.jacobian_derivatives
    jacobian_partial_derivatives = higher_order_kinematics.jacobian_partial_derivatives
    jacobian_second_rate = higher_order_kinematics.jacobian_second_rate
    twist_derivatives = higher_order_kinematics.twist_derivatives
    acceleration = higher_order_kinematics.acceleration
    jerk = higher_order_kinematics.jerk
    joint_motion_of_bodies = higher_order_kinematics.joint_motion_of_bodies

    terms = dynamics.terms
    mass_matrix = dynamics.mass_matrix
    mass_matrix_rate = dynamics.mass_matrix_rate
    coriolis_matrix = dynamics.coriolis_matrix
    mass_matrix_product = dynamics.mass_matrix_product
    coriolis_transpose_product = dynamics.coriolis_transpose_product
    gravity_force = dynamics.gravity_force
    inverse_dynamics = dynamics.inverse_dynamics
    forward_dynamics = dynamics.forward_dynamics
    kinetic_energy = dynamics.kinetic_energy
    potential_energy = dynamics.potential_energy
    energy = dynamics.energy
    momentum = dynamics.momentum
    momentum_regressor = regressor.momentum_regressor
    momentum_rate_regressor = regressor.momentum_rate_regressor
    regressor = regressor.regressor

    mass_matrix_inverse = articulated.mass_matrix_inverse
    mass_matrix_solve = articulated.mass_matrix_solve
    articulated_bodies = articulated.articulated_bodies
    operational_mobility = articulated.operational_mobility
    operational_mobility_rate = articulated.operational_mobility_rate
    operational_inertia = articulated.operational_inertia
    operational_inertia_rate = articulated.operational_inertia_rate

    dynamically_consistent_inverse = redundancy.dynamically_consistent_inverse
    null_space_projector = redundancy.null_space_projector

    inverse_dynamics_derivatives = derivatives.inverse_dynamics_derivatives
    inverse_dynamics_derivatives_along = derivatives.inverse_dynamics_derivatives_along
    inverse_dynamics_second_derivatives = derivatives.inverse_dynamics_second_derivatives
    inverse_dynamics_rates = time_derivatives.inverse_dynamics_rates
    forward_dynamics_derivatives = derivatives.forward_dynamics_derivatives
    forward_dynamics_second_derivatives = derivatives.forward_dynamics_second_derivatives
    mass_matrix_derivative = derivatives.mass_matrix_derivative
    mass_matrix_inverse_derivative = derivatives.mass_matrix_inverse_derivative
    mass_matrix_inverse_rate = derivatives.mass_matrix_inverse_rate
    geometric_sensitivity = derivatives.geometric_sensitivity
    pose_sensitivity = derivatives.pose_sensitivity
    linearize = derivatives.linearize

    inner_product = curvature.inner_product
    christoffel_symbols = curvature.christoffel_symbols
    covariant_derivative = curvature.covariant_derivative
    riemann_curvature = curvature.riemann_curvature
    sectional_curvature = curvature.sectional_curvature
    ricci_curvature = curvature.ricci_curvature
    scalar_curvature = curvature.scalar_curvature

    bounds = bounds.bounds

    to_c = export.to_c
    to_numba = compiled.to_numba
    to_ptx = cuda.to_ptx
    to_cuda = cuda.to_cuda
