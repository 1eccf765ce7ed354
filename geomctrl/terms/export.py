"""Use a robot's terms outside Python: C99 source, CasADi, JAX and PyTorch functions. For NVIDIA GPUs see `gpu`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import listed, optional_package, path_of, shown
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import random_configuration
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.other_names import named_arguments
from geomctrl.tracing.backends import c, c_files
from geomctrl.tracing.backends.rounding import rounded, tolerances

from .kinematics import Representation, representation_number
from .requested_terms import (
    FRAME_TERMS,
    MEANINGS,
    Term,
    compiled_term,
    expected_outputs,
    random_inputs,
    traced_term,
)

OLDEST_JAX = "0.6.2"  # with its versions up to 0.10 the tests have run
OLDEST_TORCH = "2.13"  # with it and 2.15 the tests have run
FAILURE = "where the mass matrix is not positive definite"


@named_arguments()
def to_c(
    robot: Mechanism,
    path: str | Path,
    terms: Sequence[str] = ("inverse_dynamics",),
    *,
    name: str | None = None,
    precision: str = "double",
    frame: str | None = None,
    representation: Representation = "body",
) -> tuple[Path, ...]:
    """Write terms as C99 source with the robot's numbers: NAME.h, NAME.c and NAME_test.c.

    Parameters
    ----------
    path : str or Path
        The folder to write to.
    terms : sequence of str
        Names from `geomctrl.compiler.catalogue`, for example "inverse_dynamics" or "terms"; also "pose", "jacobian" and
        "jacobian_rate" of `frame`. Default: inverse dynamics.
    name : str, optional
        Name of the files and prefix of the functions, NAME_term. Default: the robot's name.
    precision : {"double", "float"}
        Default "double".
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    tuple of Path
        The files that were written.

    Raises
    ------
    NameNotFoundError
        If there is no such term or frame.
    ArgumentError
        If `name` is not a C identifier or another argument is invalid.

    Notes
    -----
    The code depends only on libm, allocates nothing and has no loops, so every call takes the same number of
    operations. The header states sizes, units, the order of joints and bodies, and that number. NAME_test.c compares
    the results on the target with Python's, within rounding.

    Examples
    --------
    >>> import tempfile
    >>> import geomctrl as gc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print([path.name for path in gc.models.two_link().to_c(folder, ["mass_matrix"], name="arm")])
    ['arm.h', 'arm.c', 'arm_test.c']
    """
    require_robot("robot", robot)
    path = path_of("path", path)
    representation_number(representation)
    name = c_files.prefix("name", c_files.prefix_of(robot.name, "robot") if name is None else name)
    c_files.checked_precision(precision)
    requested = _names(terms)
    if frame is not None and not any(term in FRAME_TERMS for term in requested):
        raise ArgumentError(
            f"frame: expected one of {', '.join(FRAME_TERMS)} among the terms, got {', '.join(requested)}"
        )
    rng = np.random.default_rng(0)
    q, units = random_configuration(robot, rng), []
    for word in requested:
        term = compiled_term(robot, word, frame if word in FRAME_TERMS else None, representation, "terms")
        f = _function(robot, f"{name}_{word}", term, precision)
        inputs = [rounded(x, precision) for x in random_inputs(robot, term, rng, q)]
        expected = expected_outputs(robot, term, inputs)
        allowed = [] if expected is None else tolerances(f.trace, inputs, expected, precision)
        units.append(c_files.exported(f, word, FAILURE, [c.Case(inputs, expected, allowed)]))
    return c_files.write(path, name, _heading(robot, precision), precision, units)


def _heading(robot: Mechanism, precision: str) -> list[str]:
    title = f"{c_files.comment(robot.name)}: {robot.nbodies} bodies, nq = {robot.nq}, nv = {robot.nv}"
    return [
        f"{title}; made by geomctrl in {precision} precision.",
        "SI units, radians; the angular part of twists and wrenches first. All functions return 1 where not said.",
        *("Velocity coordinates:", *c_files.numbered(robot.dof_names)),
        *("Bodies:", *c_files.numbered(robot.body_names)),
    ]


def _function(robot: Mechanism, name: str, term: Term, precision: str) -> c.Function:
    traced, sizes = traced_term(robot, term)
    inputs = [c.Parameter(x.name, sizes.of(x), MEANINGS[x.name]) for x in term.inputs]
    outputs = [c.Parameter(y.name, sizes.of(y), MEANINGS[y.name]) for y in term.algorithm.outputs]
    return c.Function(name, traced, inputs, outputs, precision)


def _names(terms: Sequence[str]) -> list[str]:
    if isinstance(terms, str):
        return [terms]
    names = listed("terms", terms)
    if not names or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"terms: expected at least one name of a term, got {shown(terms)}")
    return names


@named_arguments()
def to_casadi(
    robot: Mechanism,
    term: str = "inverse_dynamics",
    *,
    frame: str | None = None,
    representation: Representation = "body",
) -> Any:
    """Return a term as a casadi.Function of the robot's numbers.

    CasADi can differentiate it, map it over states, use it in optimization problems and generate C from it. This needs
    the package of `pip install 'geomctrl[casadi]'`.

    Parameters
    ----------
    term : str
        As for `to_c`; also "integrate" and "difference", as `Robot.integrate` and `Robot.difference`. Default:
        "inverse_dynamics".
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    casadi.Function
        Its inputs and outputs have the names and shapes of the term's, for example (q, v, a) -> tau.

    Raises
    ------
    NameNotFoundError
        If there is no such term or frame.
    GeomctrlError
        If casadi is missing or too old, or if the function differs from Python.

    Notes
    -----
    Arguments are not checked: nan propagates, and results are nan where the term has none (a mass matrix that is not
    positive definite). CasADi differentiates with respect to the numbers of q. A joint with several degrees of freedom
    has 12, which are not independent: for derivatives along its velocities, differentiate at q = integrate(q0, dv) with
    respect to dv at 0.

    Examples
    --------
    >>> import geomctrl as gc
    >>> f = gc.models.two_link().to_casadi("inverse_dynamics")
    >>> f.name_in(), f.name_out()
    (['q', 'v', 'a'], ['tau'])
    """
    return import_module("geomctrl.interop.casadi_functions").term_to_casadi(robot, term, frame, representation)


@named_arguments()
def to_jax(
    robot: Mechanism,
    term: str = "inverse_dynamics",
    *,
    frame: str | None = None,
    representation: Representation = "body",
) -> Callable[..., Any]:
    """Return a term as a JAX function that jits, vmaps and differentiates.

    This needs the package `jax` (pip install 'geomctrl[jax]').

    Parameters
    ----------
    term : str
        As for `to_c`; also "integrate" (q, dv) and "difference" (q0, q1), the functions of configurations that have
        the names of methods. Default "inverse_dynamics".
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    callable
        f(q, v, a, parameters=None), with the arguments of the term in the order of `f.inputs`, and arrays with any
        leading axes, the same for all. parameters (nbodies, 10), or (..., nbodies, 10) for each state its own, are
        inertial parameters instead of the robot's; they may also be the last positional argument. The result is an
        array, or a tuple of several, which is a named tuple where the robot's method returns one.

    Raises
    ------
    NameNotFoundError
        If there is no such term or frame.
    GeomctrlError
        If jax is missing, if its interface for foreign functions is not supported, or if the function differs from
        Python.
    ModelError
        If the code of the term would be too long; of a derivative, when it is compiled.

    Notes
    -----
    XLA calls compiled code of geomctrl (its foreign function interface); no C compiler is needed. All robots of one
    structure share the code.

    - Derivatives of any order, forward and reverse, with respect to all arguments and `parameters`, are exact: they
      are compiled from the derivatives of the term's operations.
    - The 12 numbers of a pose in q can only change as the joint moves: derivatives are those along the group, and a
      gradient with respect to q has no component that leads out of it. For derivatives with respect to velocity
      coordinates differentiate f(integrate(q, d), ...) with respect to d at 0.
    - Computation is in float64. float32 arrays, JAX's default, are converted and the results rounded to float32;
      jax.config.update("jax_enable_x64", True) gives float64 throughout.
    - Nothing raises at run time: a state with nan, infinity or an invalid pose, or without a result because the
      mass matrix is not positive definite, gives nan. Wrong shapes and types raise ArgumentError.
    - On NVIDIA GPUs, with the extra `cuda`, XLA launches a kernel with a thread for each state. Experimental:
      assembled and run on a CPU stand-in, not yet on a GPU.

    Examples
    --------
    >>> import geomctrl as gc
    >>> f = gc.models.two_link().to_jax("inverse_dynamics")  # doctest: +SKIP
    >>> jax.jit(jax.grad(lambda q, v, a: f(q, v, a)[0]))(q, v, a)  # doctest: +SKIP
    """
    require_robot("robot", robot)
    optional_package("to_jax", "jax", "jax", OLDEST_JAX)
    return import_module("geomctrl.interop.jax_functions").JaxFunction(robot, term, frame, representation)


@named_arguments()
def to_torch(
    robot: Mechanism,
    term: str = "inverse_dynamics",
    *,
    frame: str | None = None,
    representation: Representation = "body",
) -> Callable[..., Any]:
    """Return a term as a PyTorch function that autograd differentiates.

    This needs the package `torch` (pip install 'geomctrl[torch]').

    Parameters
    ----------
    term : str
        As for `to_jax`. Default "inverse_dynamics".
    frame, representation : str
        Of "pose", "jacobian" and "jacobian_rate", as for `Robot.jacobian`.

    Returns
    -------
    callable
        f(q, v, a, parameters=None), with the arguments of the term in the order of `f.inputs`, and tensors with any
        leading axes, the same for all. parameters (nbodies, 10), or (..., nbodies, 10) for each state its own, are
        inertial parameters instead of the robot's; they may also be the last positional argument. The result is a
        tensor, or a tuple of several, which is a named tuple where the robot's method returns one.

    Raises
    ------
    NameNotFoundError
        If there is no such term or frame.
    GeomctrlError
        If torch is missing or too old, or if the function differs from Python.
    ModelError
        If the code of the term would be too long; of a derivative, when it is first computed.

    Notes
    -----
    Tensors are passed to compiled code of geomctrl without a copy; no C++ compiler is needed. Large batches are shared
    among `torch.get_num_threads()` threads.

    - Derivatives of any order with respect to all arguments and `parameters` are exact: by `backward`, and by
      `torch.func` (grad, vjp, jvp, jacrev, jacfwd, hessian, vmap). By configurations they are those along the group,
      as for `to_jax`.
    - `torch.compile` keeps the function as one operator of its graph, fullgraph=True included. In compiled code
      gradients are those of `backward` and vmap works, but not `torch.func.grad` and its relatives.
    - Computation is in float64. The result has float32 if no argument has float64. Other types are refused.
    - Tensors on NVIDIA GPUs need the extra `cuda`. Experimental: assembled and run on a CPU stand-in, not yet
      on a GPU.
    - Nothing raises at run time: a state with nan, infinity or an invalid pose, or without a result because the
      mass matrix is not positive definite, gives nan. Wrong shapes and types raise ArgumentError.

    Examples
    --------
    >>> import geomctrl as gc
    >>> f = gc.models.two_link().to_torch("inverse_dynamics")  # doctest: +SKIP
    >>> f(q, v, a).sum().backward()  # doctest: +SKIP
    """
    require_robot("robot", robot)
    optional_package("to_torch", "torch", "torch", OLDEST_TORCH)
    return import_module("geomctrl.interop.torch_functions").TorchFunction(robot, term, frame, representation)
