"""What every estimator is: one object that the library asks, wherever estimators differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from .estimate import Estimate


@dataclass(frozen=True)
class Estimator:
    """A way from a log to parameters.

    To add one, write its function and this object in a file of their own, and name the object in `ESTIMATORS` (this
    package's `__init__`). `fit`, `identify`, reports and the command line know it then.

    1. `name` is what `fit(model, data, name)` and `--method` take.
    2. `function(model, data, **options)` returns an `Estimate` whose method is `name`. data is a Dataset or, unless the
       function refuses it, the log's `Compressed` factors. Options have defaults, all of them.
    3. `summary` says in a few words what it minimises, or what it is for.
    4. `needs_samples`: it makes something of the samples themselves that the factors do not hold, the correlation of
       residuals for instance.
    5. `prior_weight` names the option that weighs a prior, None for an estimator without one. What has a prior answers
       for logs that do not tell all parameters apart, and is reported beside unconstrained least squares.
    6. `physical`: every body of its estimate can exist.
    7. `uncertainty`: a remark on its standard deviations, or why it has none, as a clause.
    """

    name: str
    function: Callable[..., Estimate]
    summary: str
    needs_samples: bool = False
    prior_weight: str | None = None
    physical: bool = False
    uncertainty: str = ""

    @property
    def has_prior(self) -> bool:
        return self.prior_weight is not None

    @property
    def options(self) -> dict[str, Any]:
        """The options of `function` with their defaults."""
        return {p.name: p.default for p in list(signature(self.function).parameters.values())[2:]}
