"""Algorithms for robots whose joints follow others, q_tree = A q + b, generated from those for trees.

The packed array of such a robot (`tree.pack_coupled`) contains that of its tree, A and b, and the independent joints.
An algorithm on coordinates only (`ON_COORDINATES`) runs on the latter unchanged. All other algorithms map velocities to
forces, forms and motions: `projected` runs them on the tree at (A q + b, A v, ...) and contracts every output axis of
length nv with A. Forward dynamics and M^-1 use the projected mass matrix, because articulated bodies do not support
couplings. An algorithm that calls others (`COMPOSED`) is generated with their coupled versions.

Callers select the version with `fitting(algorithm, model)`; for uncoupled robots it is the algorithm itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from geomctrl.tracing.rebinding import rebind

from . import (
    articulated_bodies,
    composite_bodies,
    configuration,
    derivatives,
    mass_matrix_inverse,
    newton_euler,
    plant,
    skewness,
)
from .algorithms import Algorithm, Array
from .newton_euler import PLOEN
from .primitives import primitive, python_function
from .primitives import references as globals_of
from .tree import (
    FIRST,
    WIDTH,
    coordinate_of,
    first_dof_of,
    holds_pose,
    joints_begin,
    joints_end,
    n_bodies,
    n_q,
    n_v,
    parent_of,
)

# --- the model array ---------------------------------------------------------------------------------------------


@primitive
def tree_end(model):
    """End of the tree's part of the model array."""
    return (n_bodies(model) + 1) * WIDTH


@primitive
def ratio(model, r, c):
    """A[r, c]."""
    return model[tree_end(model) + r * n_v(model) + c]


@primitive
def offset(model, i):
    """b of the joint of body i."""
    return model[tree_end(model) + n_v(model[: tree_end(model)]) * n_v(model) + i]


@primitive
def expand_configuration(model, q, out):
    """out = A q + b for coordinates; poses are copied."""
    tree, joints = model[: tree_end(model)], model[joints_begin(model) : joints_end(model)]
    for i in range(n_bodies(tree)):
        if not holds_pose(tree, i):
            x = offset(model, i)
            for j in range(n_bodies(joints)):
                if not holds_pose(joints, j):
                    x += ratio(model, first_dof_of(tree, i), first_dof_of(joints, j)) * q[coordinate_of(joints, j)]
            out[coordinate_of(tree, i)] = x
    for j in range(n_bodies(joints)):
        if holds_pose(joints, j):
            begin, own = coordinate_of(tree, parent_of(joints, j)), coordinate_of(joints, j)
            for e in range(12):
                out[begin + e] = q[own + e]


@primitive
def expand_velocities(model, x, out):
    """out = A x for every block of nv numbers of x."""
    n, m = n_v(model[: tree_end(model)]), n_v(model)
    for block in range(x.shape[0] // m):
        for r in range(n):
            y = 0.0
            for c in range(m):
                y += ratio(model, r, c) * x[block * m + c]
            out[block * n + r] = y


@primitive
def contract(model, before, after, x, out):
    """out[p, c, s] = sum_r A[r, c] x[p, r, s] for p < before and s < after."""
    n, m = n_v(model[: tree_end(model)]), n_v(model)
    for p in range(before):
        for c in range(m):
            for s in range(after):
                y = 0.0
                for r in range(n):
                    y += ratio(model, r, c) * x[(p * n + r) * after + s]
                out[(p * m + c) * after + s] = y


# --- generated kernels -------------------------------------------------------------------------------------------


def _source(algorithm: Algorithm, lines: list[str], memory: bool) -> Callable[..., Any]:
    """Compile a kernel with the algorithm's arguments; without its memory unless requested."""
    names = ["model", *(x.name for x in algorithm.inputs), *(x.name for x in algorithm.options)]
    names += [f"memory{k}" for k in range(len(algorithm.memory))] if memory else []
    names += [y.name for y in algorithm.outputs]
    body = "".join(f"\n    {line}" for line in lines)
    own = (tree_end, expand_configuration, expand_velocities, contract, joints_begin, joints_end, n_bodies, n_q, n_v)
    scope: dict[str, Any] = {f.__name__: f for f in own} | {"np": np, "ALGORITHM": algorithm}
    exec(f"def kernel({', '.join(names)}):{body}\n", scope)
    kernel = scope["kernel"]
    kernel.__module__ = algorithm.py_func.__module__
    kernel.__name__ = kernel.__qualname__ = f"coupled_{algorithm.py_func.__name__}"
    return primitive(kernel)


@functools.cache
def projected(algorithm: Algorithm, memory: bool = False) -> Callable[..., Any]:
    """The algorithm on the tree, contracted with A: kernel(model, *inputs, *options, *outputs)."""
    lines = ["tree = model[: tree_end(model)]", "nb, nq, nv, m = n_bodies(tree), n_q(tree), n_v(tree), n_v(model)"]
    arguments = []
    for x in algorithm.inputs:
        moves = x.shape == ("nq",) or re.search(r"\bnv\b", x.size)
        arguments.append(f"tree_{x.name}" if moves else x.name)
        if moves:
            expand = "expand_configuration" if x.shape == ("nq",) else "expand_velocities"
            lines += [f"tree_{x.name} = np.empty({x.size})", f"{expand}(model, {x.name}, tree_{x.name})"]
    arguments += [x.name for x in algorithm.options]
    for k, part in enumerate(algorithm.memory):
        kind = ", np.complex128" if part.kind == "complex128" else ""
        lines.append(f"own{k} = np.empty(({part.count}) * {part.width}{kind})")
        arguments.append(f"own{k}")
    contracted = [y for y in algorithm.outputs if re.search(r"\bnv\b", y.size)]
    for y in contracted:
        lines.append(f"tree_{y.name} = np.empty(({', '.join(y.shape)},))")
    arguments += [f"tree_{y.name}" if y in contracted else y.name for y in algorithm.outputs]
    lines.append(f"good = ALGORITHM({', '.join(['tree', *arguments])})")
    for y in contracted:
        lines += _contracted(y)
    lines.append("return good" if algorithm.may_fail else "return")
    return _source(algorithm, lines, memory)


def _contracted(y: Array) -> list[str]:
    """Lines that fill the output y from that of the tree, axis by axis."""
    lines, now = [], f"tree_{y.name}.reshape(-1)"
    small = [re.sub(r"\bnv\b", "m", n) for n in y.shape]
    for axis, size in enumerate(y.shape):
        if not re.search(r"\bnv\b", size):
            continue
        before = " * ".join(f"({n})" for n in [*small[:axis], f"({size}) // nv"])
        after = " * ".join(f"({n})" for n in ["1", *y.shape[axis + 1 :]])
        name = f"{y.name}_{axis}"
        lines += [f"{name} = np.empty(({before}) * m * ({after}))"]
        lines += [f"contract(model, {before}, {after}, {now}, {name})"]
        now = name
    indices, place = [f"i{k}" for k in range(len(small))], "0"
    for k, size in enumerate(small):
        lines.append("    " * k + f"for i{k} in range({size}):")
        place = f"({place}) * ({size}) + i{k}"
    lines.append("    " * len(small) + f"{y.name}[{', '.join(indices)}] = {now}[{place}]")
    return lines


def on_coordinates(algorithm: Algorithm) -> Callable[..., Any]:
    """The algorithm on the independent joints only."""
    arguments = [*(x.name for x in (*algorithm.inputs, *algorithm.options))]
    arguments += [*(f"memory{k}" for k in range(len(algorithm.memory))), *(y.name for y in algorithm.outputs)]
    return _source(
        algorithm, [f"ALGORITHM(model[joints_begin(model) : joints_end(model)], {', '.join(arguments)})"], True
    )


def composed(algorithm: Algorithm) -> Callable[..., Any]:
    """The algorithm with the algorithms that it calls replaced by their versions for coupled robots."""
    return _replaced(algorithm.py_func)


@functools.cache
def _replaced(function: FunctionType) -> FunctionType:
    changes = {}
    for name, value in globals_of(function).items():
        if isinstance(value, Algorithm):
            changes[name] = _kernel(value)
        elif (inner := python_function(value)) is not None and (other := _replaced(inner)) is not inner:
            changes[name] = other
    if not changes:
        return function
    twin = rebind(function, {**function.__globals__, **changes})
    twin.__qualname__ = f"coupled_{function.__qualname__}"
    return primitive(twin)


# --- from the mass matrix ----------------------------------------------------------------------------------------

coupled_mass_matrix = projected(composite_bodies.mass_matrix)
coupled_inverse_dynamics = projected(newton_euler.inverse_dynamics_reference)
coupled_derivatives = projected(derivatives.inverse_dynamics_derivatives)


@primitive
def factorise(M):
    """M = L^T D L in its lower half, from the last coordinate to the first. False unless M > 0."""
    positive = True
    for k in range(M.shape[0] - 1, -1, -1):
        positive &= M[k, k] > 0.0
        inverse = 1.0 / M[k, k]
        for i in range(k):
            factor = M[k, i] * inverse
            for j in range(i + 1):
                M[i, j] -= factor * M[k, j]
        for i in range(k):
            M[k, i] *= inverse
    return positive


@primitive
def solve(L, x):
    """x = M^-1 x, M being factorised."""
    n = x.shape[0]
    for k in range(n - 1, -1, -1):
        for i in range(k):
            x[i] -= L[k, i] * x[k]
        x[k] /= L[k, k]
    for k in range(n):
        for i in range(k):
            x[k] -= L[k, i] * x[i]


@primitive
def accelerate(model, q, v, tau, f_ext, a):
    n = n_v(model)
    M, zero = np.empty((n, n)), np.empty(n)
    coupled_mass_matrix(model, q, M)
    zero[:] = 0.0
    coupled_inverse_dynamics(model, q, v, zero, v, f_ext, PLOEN, a)
    for k in range(n):
        a[k] = tau[k] - a[k]
    positive = factorise(M)
    solve(M, a)
    return positive


@primitive
def invert(model, q, inverse):
    n = n_v(model)
    M, x = np.empty((n, n)), np.empty(n)
    coupled_mass_matrix(model, q, M)
    positive = factorise(M)
    for k in range(n):
        x[:] = 0.0
        x[k] = 1.0
        solve(M, x)
        for i in range(k + 1):
            inverse[i, k] = inverse[k, i] = x[i]
    return positive


@primitive
def differentiate(model, q, v, tau, f_ext, dq, dv, dtau, a):
    n = n_v(model)
    q_rows, v_rows, M = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    good = accelerate(model, q, v, tau, f_ext, a)
    invert(model, q, dtau)
    coupled_derivatives(model, q, v, a, f_ext, q_rows, v_rows, M)
    np.dot(dtau, q_rows, dq)
    np.dot(dtau, v_rows, dv)
    for i in range(n):
        for j in range(n):
            dq[i, j], dv[i, j] = -dq[i, j], -dv[i, j]
    return good


def _with_memory(algorithm: Algorithm, function: Callable[..., Any]) -> Callable[..., Any]:
    names = [x.name for x in (*algorithm.inputs, *algorithm.options, *algorithm.outputs)]
    kernel: Any = _source(algorithm, [f"return FUNCTION(model, {', '.join(names)})"], True)
    kernel.__globals__["FUNCTION"] = function
    return kernel


# --- which is which ----------------------------------------------------------------------------------------------

ON_COORDINATES = {
    *(configuration.moved, configuration.difference, configuration.tracking_error, configuration.error_gradient),
    *(configuration.sliding, configuration.product_motion, configuration.sinusoid_motion),
}
COMPOSED = {plant.plant_rate, plant.adaptive_law, skewness.skewness, skewness.skewness_of}
BY_MASS_MATRIX = {
    articulated_bodies.forward_dynamics: accelerate,
    articulated_bodies.forward_dynamics_articulated: accelerate,
    mass_matrix_inverse.mass_matrix_inverse: invert,
    derivatives.forward_dynamics_derivatives: differentiate,
}


@functools.cache
def _kernel(algorithm: Algorithm) -> Callable[..., Any]:
    if algorithm in ON_COORDINATES:
        return on_coordinates(algorithm)
    if algorithm in COMPOSED:
        return composed(algorithm)
    if algorithm in BY_MASS_MATRIX:
        return _with_memory(algorithm, BY_MASS_MATRIX[algorithm])
    return projected(algorithm, memory=True)


@functools.cache
def _coupled(algorithm: Algorithm) -> Algorithm:
    twin = object.__new__(Algorithm)
    twin.__dict__.update(algorithm.__dict__)
    for name in ("one", "many"):
        twin.__dict__.pop(name, None)
    kernel = _kernel(algorithm)
    twin.py_func, twin._declared, twin._python_time = kernel, {}, {}
    return twin


def fitting(algorithm: Algorithm, model: np.ndarray) -> Algorithm:
    """The version of the algorithm for the robot with this packed array."""
    return _coupled(algorithm) if model[FIRST - WIDTH] else algorithm
