"""Controllers, one per file: each has default gains, a Lyapunov function and the rate that its proof promises.

To add a controller, add a file here: `sliding_mode.py` with a class `SlidingMode` becomes `controllers.SlidingMode`.
With `GAINS` and `tuned` (rule 9 of `geomctrl.Controller`), `geomctrl track --controller sliding-mode` offers it too.
`__init__.pyi` lists the existing controllers for type checkers. Files that begin with an underscore contain shared
code.
"""

import importlib
import pkgutil
from typing import Any

from geomctrl.arguments import flag
from geomctrl.other_names import UnknownName

_OWN = ("classes", "__doc__", "__file__", "__name__", "__path__")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(c.__name__ for c in classes().values())
    if name in _files():
        return importlib.import_module(f"{__name__}.{name}")
    for file in _files():
        if name.lower() == file.replace("_", "") and _class_in(file).__name__ == name:
            globals()[name] = _class_in(file)
            return globals()[name]
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise UnknownName(__name__, name, tuple(__dir__()))


def __dir__() -> list[str]:
    return sorted([*_OWN, *(c.__name__ for c in classes().values())])


def classes(tuned: bool = False) -> dict[str, type[Any]]:
    """Return the bundled controllers by their names on the command line.

    Parameters
    ----------
    tuned : bool
        Whether only those are returned that can choose gains for any robot, by their class method `tuned`. Default:
        False.

    Returns
    -------
    dict of str to type
        "slotine-li" is SlotineLi in slotine_li.py.

    Examples
    --------
    >>> from geomctrl import controllers
    >>> controllers.classes()["slotine-li"].__name__
    'SlotineLi'
    """
    flag("tuned", tuned)
    laws = {file.replace("_", "-"): _class_in(file) for file in _files()}
    return {name: law for name, law in laws.items() if hasattr(law, "tuned")} if tuned else laws


def _files() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def _class_in(file: str) -> type:
    """The class of a file: its name without underscores, in any capitalisation."""
    inside, wanted = vars(importlib.import_module(f"{__name__}.{file}")), file.replace("_", "")
    for name, x in inside.items():
        if name.lower() == wanted and isinstance(x, type):
            return x
    raise ImportError(f"{__name__}.{file}: expected a class with that name in capitals, SlotineLi as in slotine_li.py")
