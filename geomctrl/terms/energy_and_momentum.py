"""Energies, momenta and the centre of mass of a robot.

Each function is also a method of `Robot`. All accept leading batch axes, the same for every argument, and raise
ArgumentError for wrong shapes, nan, infinity, or poses in q that are not rigid.
"""

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.kernels import momenta
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.mechanism.states import as_batch

from .batches import over_states


def _mechanical_state(robot: Mechanism, q, v) -> np.ndarray:
    state = robot._code.mechanical_state(q, v)
    return over_states(robot, momenta.mechanical_state, q=q, v=v) if state is None else state


def kinetic_energy(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return the kinetic energy 1/2 v . M v of the robot.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    ndarray, shape (...,)
        Energy [J], rotors of the motors (armature) included.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in q is not rigid.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> np.allclose(robot.kinetic_energy(q, v), 0.5 * v @ robot.mass_matrix(q) @ v)
    True
    """
    return _mechanical_state(robot, q, v)[..., 0]


def potential_energy(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the energy of the robot in the gravitational field.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (...,)
        Energy [J]; zero if the centre of mass is at the world's origin. Springs of the model are not included.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in q is not rigid.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.cart_pole()
    >>> float(robot.potential_energy([0.0, 0.0]) - robot.potential_energy([0.0, np.pi])) > 0       # 0: upright
    True
    """
    lead, (q,) = as_batch(robot, q=q)
    return _mechanical_state(robot, q.reshape(*lead, robot.nq), np.zeros((*lead, robot.nv)))[..., 1]


def energy(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return the sum of kinetic and potential energy.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    ndarray, shape (...,)
        Energy [J].

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in q is not rigid.

    See Also
    --------
    kinetic_energy, potential_energy

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> bool(np.isclose(robot.energy(q, v), 0.5 * v @ robot.mass_matrix(q) @ v + robot.potential_energy(q)))
    True
    """
    state = _mechanical_state(robot, q, v)
    return state[..., 0] + state[..., 1]


def momentum(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return the spatial momentum of the robot about the world's origin, in world axes.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].
    v : array_like, shape (..., nv)
        Velocity [rad/s, m/s].

    Returns
    -------
    ndarray, shape (..., 6)
        Angular momentum [kg m^2/s], then linear momentum [kg m/s].

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or an entry that is not finite, or if a pose in q is not rigid.

    See Also
    --------
    centroidal_momentum_matrix : the momentum about the centre of mass.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> velocity = (robot.center_of_mass(q + 1e-6 * v) - robot.center_of_mass(q - 1e-6 * v)) / 2e-6
    >>> bool(np.allclose(robot.momentum(q, v)[3:], robot.parameters[:, 0].sum() * velocity))
    True
    """
    return _mechanical_state(robot, q, v)[..., 2:]


def center_of_mass(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the centre of mass of the whole robot in the world frame.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., 3)
        Position [m].

    Raises
    ------
    ArgumentError
        For wrong shapes, nan, infinity, and for a robot without mass.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    >>> lifted = robot.potential_energy(q) / (9.81 * robot.parameters[:, 0].sum())
    >>> np.allclose(robot.center_of_mass(q)[2], lifted)
    True
    """
    _require_mass(robot)
    com = robot._code.at(momenta.center_of_mass)(q)
    return over_states(robot, momenta.center_of_mass, q=q) if com is None else com


def centroidal_momentum_matrix(robot: Mechanism, q: ArrayLike) -> np.ndarray:
    """Return the matrix A for which A v is the robot's momentum about its centre of mass, in world axes.

    Parameters
    ----------
    q : array_like, shape (..., nq)
        Configuration [rad, m].

    Returns
    -------
    ndarray, shape (..., 6, nv)
        Rows 0 to 2 give the angular momentum [kg m^2/s], rows 3 to 5 the linear momentum [kg m/s]. The inertia of
        motors (`armature`) is not included.

    Raises
    ------
    ArgumentError
        For wrong shapes, nan, infinity, and for a robot without mass.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> bool(np.allclose((robot.centroidal_momentum_matrix(q) @ v)[3:], robot.momentum(q, v)[3:]))
    True
    """
    lead, (flat,) = as_batch(robot, q=q)
    return _centroidal(robot, flat.reshape(*lead, robot.nq), np.zeros((*lead, robot.nv)))[0]


def centroidal_momentum_matrix_rate(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    """Return the time derivative of `centroidal_momentum_matrix` along the motion.

    Parameters
    ----------
    q, v : array_like, shape (..., nq), (..., nv)
        Configuration [rad, m] and velocity [rad/s, m/s].

    Returns
    -------
    ndarray, shape (..., 6, nv)
        Adot; the rate of the centroidal momentum is A a + Adot v.

    Raises
    ------
    ArgumentError
        For wrong shapes, nan, infinity, and for a robot without mass.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot, q, v = gc.models.two_link(), np.array([0.3, -0.5]), np.array([1.0, 0.2])
    >>> A = robot.centroidal_momentum_matrix
    >>> bool(np.allclose(robot.centroidal_momentum_matrix_rate(q, v), (A(q + 1e-6 * v) - A(q - 1e-6 * v)) / 2e-6))
    True
    """
    return _centroidal(robot, q, v)[1]


def _centroidal(robot: Mechanism, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    _require_mass(robot)
    both = robot._code.at(momenta.centroidal_momentum)(q, v)
    return over_states(robot, momenta.centroidal_momentum, q=q, v=v) if both is None else both


def _require_mass(robot: Mechanism) -> None:
    if not robot.parameters[:, 0].sum() > 0.0:
        raise ArgumentError(f"robot {robot.name!r}: expected a positive total mass, got none: no centre of mass")
