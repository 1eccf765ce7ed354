"""Copies of a law, a reference, a plant, a robot or a monitor whose numbers are symbols, and their values."""

import numpy as np
from compiler.evaluation import evaluate

from geomctrl.compiler.code import Code
from geomctrl.kernels import tree
from geomctrl.robot import Robot
from geomctrl.tracing.arrays import symbol_array
from geomctrl.tracing.patched_numpy import numpy_on_symbols
from geomctrl.tracing.requirements import requirements
from geomctrl.tracing.symbols import Condition, Graph

PLAIN = (bool, int, str, bytes, type(None), type, slice, range)


class SymbolicCopies:
    """The SymbolicCopies of one trace. Floats and arrays of floats are symbols in them; integers stay."""

    def __init__(self):
        self.graph, self.numbers, self.known = Graph(), [], {}

    def symbol(self, x):
        self.numbers.append(float(x))
        return self.graph.load(0, len(self.numbers) - 1)

    def array(self, x):
        x = np.asarray(x, float)
        return symbol_array([self.symbol(y) for y in x.ravel()], x.shape)

    def of(self, x):
        if id(x) not in self.known:
            self.known[id(x)] = self._made(x), x  # which stays alive
        return self.known[id(x)][0]

    def _made(self, x):
        if isinstance(x, PLAIN) or (callable(x) and not hasattr(x, "__dict__")):
            return x
        if isinstance(x, (float, np.floating)):
            return self.symbol(x)
        if isinstance(x, np.ndarray):
            return self.array(x) if x.dtype == np.float64 else x
        if isinstance(x, dict):
            return {key: self.of(value) for key, value in x.items()}
        if isinstance(x, (tuple, list)):
            created = [self.of(y) for y in x]
            return type(x)(*created) if hasattr(x, "_fields") else type(x)(created)
        if isinstance(x, Robot):
            return self._robot(x)
        if type(x).__module__.startswith(("geomctrl", "test")) and hasattr(x, "__dict__"):
            return self._copy(x, {name: self.of(value) for name, value in vars(x).items()})
        return x

    def _copy(self, x, attributes):
        twin = object.__new__(type(x))
        twin.__dict__.update(attributes)
        return twin

    def _robot(self, robot):
        code = Code(robot._model)
        model = robot._model.astype(object)
        for k in np.flatnonzero(np.isnan(code.pattern)):
            model[k] = self.symbol(robot._model[k])
        model = symbol_array(model.tolist(), model.shape)
        rows = model.reshape(-1, tree.WIDTH)
        attributes = {
            "_model": model,
            "_code": Code(model, code.pattern),
            "parameters": rows[:-1, tree.J : tree.S],
            "gravity": rows[-1, tree.GRAVITY : tree.GRAVITY + 3],
        }
        return self._copy(robot, vars(robot) | attributes)

    def values(self, function, *args):
        """Return the numbers of what `function` returns on symbols: a scalar or array, or a tuple of them."""
        with numpy_on_symbols(), requirements() as required:
            result = function(*args)
        assert all(evaluate(self.graph, [x.index for x in required if isinstance(x, Condition)], [self.numbers]))
        return self.evaluated(result)

    def evaluated(self, x):
        if isinstance(x, tuple):
            return tuple(self.evaluated(y) for y in x)
        if isinstance(x, dict):
            return {key: self.evaluated(y) for key, y in x.items()}
        if x is None:
            return None
        ends = [self.graph.operand(y) for y in np.asarray(x, object).ravel().tolist()]
        return np.reshape(np.array(evaluate(self.graph, ends, [self.numbers]), float), np.shape(x))
