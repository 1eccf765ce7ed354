"""Robots under published neural networks, from ARCH-COMP's category AINNCS: docs/how-to/tubes.md.

    python experiments/studies/neural_loops.py [--quick]

Specifications: T. T. Johnson et al., ARCH-COMP category reports: artificial intelligence and neural network control
systems, EPiC Series in Computing, 2020 to 2024. Networks: ARCH-COMP's, as in the models of ClosedLoopReachability.jl
(M. Forets and C. Schilling, MIT licence, see `networks`). All commands are held for a period.

- Single pendulum: a point mass of 0.5 kg on 0.5 m, g = 1 m/s^2. 0 <= theta <= 1 from 0.5 to 1 s.
- Double pendulum: two of them, with angles from the vertical and a torque along each. All states in [-1, 1.7] to 1 s.
- Oscillator (TORA, "reach"): a cart on a spring and an unbalanced rotor, in the form of its equations. In the goal at
  5 s.
- Cart-pole: equations, initial box and goal of ARCH-COMP 2024's "balancing", in the form of its equations. The network,
  two layers of 64 tanh, is made here, because the published one is a binary file that could not be read. Position,
  angle and its rate are in [-0.001, 0.001] from 8 to 10 s.

Prints the verdict, the time of the CPU, and widths at the end beside those of sampled motions. No option is tuned.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import geomctrl as gc
from geomctrl import testing

NETWORKS = Path(__file__).parent / "networks"
ACTIVATIONS = {
    "Affine": lambda x: x,
    "ReLU": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 0.5 + 0.5 * np.tanh(0.5 * x),
}


def network(name):
    """The function of a network's file: sizes, activations, weights and bias of each neuron, then offset and scale."""
    entries = (NETWORKS / f"{name}.txt").read_text().split()
    inputs, outputs, hidden = map(int, entries[:3])
    sizes = [inputs, *map(int, entries[3 : 3 + hidden]), outputs]
    activations = [ACTIVATIONS[x] for x in entries[3 + hidden : 4 + 2 * hidden]]
    is_single = "tanh" in entries or "sigmoid" in entries  # its numbers are those of single precision, to nine digits
    numbers = np.array(entries[4 + 2 * hidden :], np.float32 if is_single else float).astype(float)
    layers = []
    for n, m, activation in zip(sizes, sizes[1:], activations):
        block, numbers = numbers[: m * (n + 1)].reshape(m, n + 1), numbers[m * (n + 1) :]
        layers.append((block[:, :-1].copy(), block[:, -1].copy(), activation))
    offset, scale = numbers.tolist()

    def f(x):
        for W, b, activation in layers:
            x = activation(W @ x + b)
        return (x - offset) * scale

    return f


@dataclass(frozen=True)
class Problem:
    """A loop with initial states from lower to upper; `rates(x, u)` are its equations by hand, at the network's u."""

    plant: gc.Plant
    law: Callable
    lower: np.ndarray
    upper: np.ndarray
    t_end: float
    control_dt: float
    network_command: Callable
    rates: Callable


def point_mass():
    return gc.inertia.from_com(0.5, (0.0, 0.0, 0.5), np.zeros((3, 3)))


def turning(name):
    return gc.Joint.revolute((0, 1, 0), name=name)


def single_pendulum():
    body = gc.Body("rod", None, turning("theta"), None, point_mass())
    robot, controller = gc.Robot.build([body], gravity=(0.0, 0.0, -1.0)), network("single_pendulum")

    def law(t, q, v, z):
        return gc.Command(controller(np.concatenate([q, v])))

    def rates(x, u):
        return np.array([x[1], 2.0 * np.sin(x[0]) + 8.0 * u[0]])

    box = np.array([1.0, 0.0]), np.array([1.175, 0.2])
    return Problem(gc.Plant(robot), law, *box, 1.0, 0.05, controller, rates)


def double_pendulum():
    """The angle of the second link from the vertical is that of a body without inertia."""
    up = np.eye(4)
    up[2, 3] = 0.5
    bodies = [
        gc.Body("first", None, turning("theta_1"), None, point_mass()),
        gc.Body("direction", None, turning("theta_2"), None, np.zeros(10)),
        gc.Body("second", "first", turning("between"), up, point_mass()),
    ]
    coupling = gc.Coupling("between", {"theta_1": -1.0, "theta_2": 1.0})
    robot = gc.Robot.build(bodies, gravity=(0.0, 0.0, -1.0), couplings=[coupling])
    controller = network("double_pendulum_less_robust")

    def law(t, q, v, z):
        return gc.Command(controller(np.concatenate([q, v])))

    def rates(x, u):
        c, s = np.cos(x[1] - x[0]), np.sin(x[1] - x[0])
        force = [s * x[3] ** 2 + 4.0 * np.sin(x[0]) + 8.0 * u[0], -s * x[2] ** 2 + 2.0 * np.sin(x[1]) + 8.0 * u[1]]
        return np.append(x[2:], np.linalg.solve([[2.0, c], [c, 1.0]], force))

    return Problem(gc.Plant(robot), law, np.full(4, 1.0), np.full(4, 1.3), 1.0, 0.05, controller, rates)


class Oscillator(gc.Plant):
    """Two masses of 1 kg: a spring and the rotor act on the first, the command on the second."""

    def net_torque(self, t, q, v, tau, x):
        return tau + np.array([0.1 * np.sin(q[1]) - q[0], 0.0])


def oscillator(name):
    unit = gc.inertia.from_com(1.0, (0.0, 0.0, 0.0), np.eye(3))
    joints = [gc.Joint.prismatic((1, 0, 0), name=x) for x in ("cart", "rotor")]
    robot = gc.Robot.build([gc.Body(j.name, None, j, None, unit) for j in joints], gravity=(0.0, 0.0, 0.0))
    outputs = network(name)

    def controller(x):
        return 11.0 * outputs(np.array([x[0], x[2], x[1], x[3]]))

    def law(t, q, v, z):
        u = controller(np.concatenate([q, v]))
        return gc.Command(np.array([0.0, u[0]]))

    def rates(x, u):
        return np.array([x[2], x[3], 0.1 * np.sin(x[1]) - x[0], u[0]])

    box = np.array([-0.77, 0.51, -0.45, -0.3]), np.array([-0.75, 0.54, -0.43, -0.28])
    return Problem(Oscillator(robot), law, *box, 5.0, 0.5, controller, rates)


class CartPole(gc.Plant):
    """The command accelerates the cart, and the pole turns by its weight and the cart's acceleration."""

    def net_torque(self, t, q, v, tau, x):
        turn = 0.08 * 0.41 * (9.8 * np.sin(q[1]) - tau[0] * np.cos(q[1])) - 0.0021 * v[1]
        return tau + np.array([0.0, turn / 0.0105])


def balancing_network():
    """Random layers without bias, so that 0 is an equilibrium, and last weights that fit a linear law of the state."""
    rng, half = np.random.default_rng(0), np.array([0.4, 0.3, 0.7, 1.5])
    first, second = rng.normal(size=(64, 4)) / (8.0 * half), rng.normal(size=(64, 64)) / 8.0
    X = rng.uniform(-half, half, (4000, 4))
    H = np.tanh(np.tanh(X @ first.T) @ second.T)
    last = np.linalg.solve(H.T @ H + np.eye(64), H.T @ (X @ [2.0, 17.5, 2.5, 3.1]))
    return lambda x: np.array([last @ np.tanh(second @ np.tanh(first @ x))])


def cart_pole():
    unit = gc.inertia.from_com(1.0, (0.0, 0.0, 0.0), np.eye(3))
    joints = [gc.Joint.prismatic((1, 0, 0), name=x) for x in ("cart", "pole")]
    robot = gc.Robot.build([gc.Body(j.name, None, j, None, unit) for j in joints], gravity=(0.0, 0.0, 0.0))
    controller = balancing_network()

    def law(t, q, v, z):
        u = controller(np.concatenate([q, v]))
        return gc.Command(np.array([2.0 * u[0], 0.0]))

    def rates(x, u):
        cart = 2.0 * u[0]
        pole = (0.08 * 0.41 * (9.8 * np.sin(x[1]) - cart * np.cos(x[1])) - 0.0021 * x[3]) / 0.0105
        return np.array([x[2], x[3], cart, pole])

    upper = np.array([0.1, 0.1, 0.05, 0.05])
    return Problem(CartPole(robot), law, -upper, upper, 10.0, 0.02, controller, rates)


PROBLEMS = {
    "single pendulum": single_pendulum,
    "double pendulum": double_pendulum,
    "oscillator, sigmoid": partial(oscillator, "tora_sigmoid"),
    "oscillator, tanh": partial(oscillator, "tora_relu_tanh"),
    "cart-pole": cart_pole,
}


def worst(statuses):
    return next(x for x in ("refuted", "undecided", "proved") if x in statuses)


def verdict(name, tube):
    """The answer for the specification."""
    if name == "single pendulum":
        return tube.stays("q[0]", lower=0.0, upper=1.0, start=0.5).status
    if name == "double pendulum":
        checks = [tube.stays(f"{x}[{k}]", lower=-1.0, upper=1.7).status for x in "qv" for k in (0, 1)]
        return worst(checks)
    if name == "cart-pole":
        return worst([tube.stays(x, lower=-0.001, upper=0.001, start=8.0).status for x in ("q[0]", "q[1]", "v[1]")])
    goal = np.array([-0.1, -np.inf, -0.9, -np.inf]), np.array([0.2, np.inf, -0.6, np.inf])
    return tube.inside(goal, time=5.0).status


def main(quick=False):
    for name, make in PROBLEMS.items():
        p = make()
        testing.reach(p.plant, p.law, (p.lower, p.lower), p.control_dt, control_dt=p.control_dt)  # compiles
        many = 1024 if name == "double pendulum" and not quick else 1
        for pieces in sorted({1, many}):
            started = time.process_time()
            tube = testing.reach(p.plant, p.law, (p.lower, p.upper), p.t_end, control_dt=p.control_dt, budget=pieces)
            seconds = time.process_time() - started
            answer = verdict(name, tube)
            total = time.process_time() - started
            print(f"{name}: {answer}, {len(tube.pieces)} pieces, tube {seconds:.2f} s, with the claim {total:.2f} s")
            if tube:
                lower, upper = tube.box(p.t_end)
                print(f"  widths {upper - lower} at the end, of 256 motions {np.ptp(tube._motions(256)[1][:, -1], 0)}")
            else:
                print(f"  enclosed until {tube.until:g} s")


if __name__ == "__main__":
    main("--quick" in sys.argv)
