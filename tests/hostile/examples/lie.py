"""groups, with so3 and se3."""

import numpy as np
from hostile.calls import Example
from hostile.examples.common import T, rng
from hostile.values import Argument

from geomctrl import groups, se3, so3

W, X = np.array([0.25, -0.5, 0.75]), np.array([0.25, -0.5, 0.75, 1.0, 0.5, -2.0])
R = so3.exp((0.0, 0.0, 0.5 * np.pi))
PASSES = "nan inf"  # rules 6 and 7 of LieGroup: values are not checked, and nan propagates

EXAMPLES = {
    "groups.Rn": Example({"n": Argument(3)}),
    "groups.Product": Example({"groups": [groups.SO3(), groups.Rn(2)]}, star="groups"),
    "groups.Product.join": Example({"parts": [R, np.ones(2)]}, groups.Product(groups.SO3(), groups.Rn(2))),
    "groups.Product.split": Example(
        {"y": Argument(np.arange(11.0), "nan inf")}, groups.Product(groups.SO3(), groups.Rn(2))
    ),
}
OF_MATRICES = {
    "SO3": {
        "hat": {"w": W},
        "vee": {"W": so3.hat(W)},
        "exp": {"w": W},
        "log": {"R": R},
        "inverse": {"R": R},
        "Ad": {"R": R},
        "ad": {"w": W},
        "dexp": {"w": W, "y": 2.0 * W},
        "dexp_inv": {"w": W, "y": 2.0 * W},
    },
    "SE3": {
        "hat": {"X": X},
        "vee": {"A": se3.hat(X)},
        "exp": {"X": X},
        "log": {"T": T},
        "inverse": {"T": T},
        "Ad": {"T": T},
        "ad": {"X": X},
        "dexp": {"X": X, "Y": 2.0 * X},
        "dexp_inv": {"X": X, "Y": 2.0 * X},
    },
}
ELEMENTS = {
    "SO3": (groups.SO3(), R),
    "SE3": (groups.SE3(), T),
    "SO3xR3": (groups.SO3xR3(), T[:3]),
    "Rn": (groups.Rn(3), W),
    "Product": (groups.Product(groups.SO3(), groups.Rn(2)), np.concatenate((R.ravel(), [1.0, 2.0]))),
}
for name, (group, a) in ELEMENTS.items():
    x = 0.25 * np.arange(1.0, group.dim + 1)
    EXAMPLES |= {
        f"groups.{name}.{method}": Example(arguments, group)
        for method, arguments in {
            "Ad": {"a": a},
            "ad": {"x": x},
            "dexp": {"x": x},
            "dexp_inv": {"x": x},
            "inverse": {"a": a},
            "log": {"a": a},
            "exp": {"x": x},
            "compose": {"a": a, "b": a},
            "random": {"rng": rng()},
            "advance": {"y": Argument(a, PASSES), "x": Argument(x, PASSES)},
            "dexp_inv_mul": {"x": Argument(x, PASSES), "y": Argument(x, PASSES)},
            "residual": {"a": Argument(a, PASSES)},
            "rotation": {"x": Argument(x, PASSES)},
        }.items()
    }
    EXAMPLES |= {f"groups.{name}.{m}": Example(given, group) for m, given in OF_MATRICES.get(name, {}).items()}
    EXAMPLES[f"groups.{name}.identity"] = Example({}, group)
EXAMPLES |= {f"groups.{name}": Example() for name in ("SO3", "SE3", "SO3xR3")}
