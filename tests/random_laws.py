"""Random controllers as engineers write them: what `random_functions` writes, gains in attributes, dicts and lists, and
with a memory counters, filters, latches, ring buffers and histories."""

import linecache
import math
import random
from collections import deque

import numpy as np
from random_functions import Writer

from geomctrl import Command, models

ROBOT = models.two_link()
HEAD = """\
class Law:
    def __init__(self):
        self.k, self.K, self.q_d = 2.0, np.array([1.0, 2.0]), np.array([0.3, -0.4])
        self.n, self.total, self.x, self.on, self.mode, self.i = 0, 0.0, 0.0, False, "b", 0
        self.last, self.buffer, self.ring = np.zeros(2), np.zeros(3), np.zeros(3)
        self.history = deque([0.0, 0.0, 0.0], maxlen=3)
        self.hits, self.near, self.work = np.zeros(2, int), np.zeros(2, bool), np.zeros(2)
        self.gains, self.pair, self.seen = {"a": 0.5, "b": 1.0}, [0.1, 0.2], (0.0, 0.0)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        e = q - self.q_d
"""
REMEMBERS = [
    ["self.n += 1"],
    ["self.total = self.total + 0.01 * e[0]"],
    ["self.last = np.array(q)"],
    ["self.last[0] = v[0]"],
    ["self.history.append(e[0])"],
    ["self.history.append(t)", "self.x = sum(self.history) / len(self.history)"],
    ["self.total = np.clip(self.total, -1.0, 1.0)"],
    ["self.buffer[1:] = self.buffer[:-1]", "self.buffer[0] = e[1]"],
    ["self.pair[0] = self.pair[1]", "self.pair[1] = t"],
    ["self.gains['a'] = self.gains['a'] * 0.99"],
    ["self.i = (self.i + 1) % 3", "self.ring[self.i] = e[0]"],
    ["self.seen = (t, e[0])"],
    ["self.mode = 'a' if self.total > 0.2 else 'b'"],
    ["self.n -= math.ceil(abs(self.x))"],
    ["self.on = np.all(v > 0.1)"],
    ["self.total += {number}"],
    ["if {condition}:", "    self.on = True"],
    ["if {condition}:", "    self.on = not self.on"],
    ["if {condition}:", "    self.total = 0.0", "else:", "    self.n = self.n + 1"],
    ["self.x = 0.9 * self.x + 0.1 * {number}"],
    ["self.n = self.n // 2 + int({condition})"],
    ["self.n = divmod(self.n - 3, 4)[1] + (e[0] > 0.1) + (t > 0.1)"],
    ["self.x = max(self.x, e[0], -0.5)", "self.n += isinstance(self.x, np.floating)"],
    ["self.total = float(self.total)", "self.n = self.n + 1 if type(self.x) is float else self.n - 1"],
    ["self.x = min(self.n, e[0])", "self.n += int(np.digitize(e[0], [-0.1, 0.0, 0.3]))"],
    ["self.hits[v > 0.1] += 1", "self.total = 0.01 * self.hits.sum()"],
    ["self.near |= np.abs(e) < 0.2", "self.last[self.near] = e[self.near]"],
    ["self.work[:] = e", "self.work *= self.K", "self.x = self.work[np.argmax(np.abs(v))]"],
    ["for k in range(3):", "    self.total += 0.01 * k", "    if {condition}:", "        break"],
    ["try:", "    self.x = 1.0 / (self.n % 3)", "except ZeroDivisionError:", "    self.x = 0.0"],
    ["self.hits = np.floor(10.0 * q).astype(int) // 2"],
]
ENDS = ["0.0", "np.clip({array}, -5.0, 5.0)", "np.tanh({array})", "np.clip({number}, -2.0, 2.0)"]
ENDS_WITH_MEMORY = [
    "(1.0 if self.on else 0.0)",
    "0.01 * self.hits",
    "np.where(self.near, 0.1, 0.0)",
    "0.1 * self.buffer[-1]",
    "0.1 * sum(self.history)",
    "self.ring.max()",
]
ENDS_WITH_MEMORY += ["(0.5 if self.mode == 'a' else 0.0)", "0.1 * self.last", "0.01 * self.n"]


class LawWriter(Writer):
    def __init__(self, rng, memory):
        super().__init__(rng)
        self.memory, self.indent = memory, 2
        self.numbers += ["self.k", "self.gains['a']", "self.pair[1]", *(["self.n", "self.total", "self.x"] * memory)]
        self.arrays += ["self.K", "e", "self.last" if memory else "self.q_d"]

    def filled(self, template):
        parts = {"number": self.number, "array": self.array, "condition": self.condition}
        for name, make in parts.items():
            if f"{{{name}}}" in template:
                template = template.replace(f"{{{name}}}", make(1))
        return template

    def changed_number(self, _):
        """A number that is not a gain."""
        own = [name for name in self.numbers[1:] if "." not in name]
        if own:
            self.line(f"{self.rng.choice(own)} {self.rng.choice(['+=', '-=', '*='])} {self.number(0)}")

    def branch(self, depth):
        self.line(f"if {self.condition(0)}:")
        self.block(depth, None)

    def early_return(self, _):
        self.line(f"if {self.condition(0)}:")
        self.line(f"    return Command(-self.k * v + np.clip({self.array(0)}, -1.0, 1.0))")

    def text(self):
        for _ in range(self.rng.choice([1, 2, 3])):
            self.statement(0)
            for line in self.rng.choice(REMEMBERS) if self.memory else ():
                self.line(self.filled(line))
        end = self.filled(self.rng.choice(ENDS + ENDS_WITH_MEMORY * self.memory))
        self.line(f"return Command(ROBOT.gravity_force(q) - 5.0 * self.K * e - self.k * v + {end})")
        return HEAD + "\n".join(self.lines) + "\n"


def law(seed, memory):
    """Return (the class of a law, its source text)."""
    text, name = LawWriter(random.Random(seed), memory).text(), f"<random law {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name  # so that a refusal can name the line
    space = {"np": np, "math": math, "deque": deque, "ROBOT": ROBOT, "Command": Command, "__name__": "random_laws"}
    exec(compile(text, name, "exec"), space)
    return space["Law"], text
