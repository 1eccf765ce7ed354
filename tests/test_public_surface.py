"""The public surface is documented, and only shrinks: callables, parameters, attributes of Robot."""

import inspect
import re
from collections import Counter

import public_surface
import pytest

import geomctrl as gc

CALLABLES = 400  # in total, without those of gc.papers
ROBOT_ATTRIBUTES = 60
PARAMETERS = 10  # of one callable
SLACK = 4  # if a part has so many callables less than its maximum, the maximum must be lowered

# What each part has today. An entry grows only for a new implementation of a contract: a monitor, a law, an
# actuator.
MAXIMUM = {
    "": 120,
    "actuators": 20,
    "control": 5,
    "controllers": 42,
    "derivatives": 6,
    "friction": 6,
    "groups": 25,
    "identification": 42,
    "inertia": 11,
    "integrators": 7,
    "interop": 14,
    "measures": 9,
    "models": 15,
    "monitors": 12,
    "operational_space": 4,
    "papers": 92,
    "references": 6,
    "sensors": 10,
    "testing": 44,
}
WITH_MORE_PARAMETERS: dict[str, int] = {}
WITHOUT_DOCSTRING = 0  # callables
OWNERS = ("robot", "data")  # first parameters of functions that are methods of a Robot or a Dataset
SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Examples")


@pytest.fixture(scope="module")
def surface():
    return public_surface.surface()


def counts(surface):
    return Counter(x.part for x in surface)


@pytest.mark.parametrize("name", sorted(gc.MODULES))
def test_every_public_module_lists_its_names(name):
    module = getattr(gc, name)
    assert list(module.__all__) == sorted(set(module.__all__), key=list(module.__all__).index), "twice"
    for public in module.__all__:
        assert not public.startswith("_")
        assert hasattr(module, public), public


def test_no_part_grows(surface):
    result = counts(surface)
    assert set(result) <= set(MAXIMUM), "a new public module needs a maximum"
    assert {part: n for part, n in result.items() if n > MAXIMUM[part]} == {}, "more public callables than before"
    loose = {part: result[part] for part in MAXIMUM if result[part] < MAXIMUM[part] - SLACK}
    assert loose == {}, "fewer by now: lower the maximum in this file"


def test_the_whole_surface_does_not_grow(surface):
    total = len(surface) - counts(surface)["papers"]
    assert total <= CALLABLES


def test_attributes_of_robot():
    public = [name for name in dir(gc.Robot) if not name.startswith("_")]
    assert len(public) <= ROBOT_ATTRIBUTES, public


def test_parameters(surface):
    numbers = {x.path: len([p for p in inspect.signature(x.object).parameters if p != "self"]) for x in surface}
    many = {path: n for path, n in numbers.items() if n > PARAMETERS}
    assert {path: n for path, n in many.items() if n > WITH_MORE_PARAMETERS.get(path, PARAMETERS)} == {}, (
        f"more than {PARAMETERS} parameters: group those that belong together"
    )
    assert sorted(WITH_MORE_PARAMETERS.keys() - many.keys()) == [], "few enough by now: take them off the list"


def test_every_public_callable_is_counted_and_documented(surface):
    """`exported` walks the modules independently: each callable has one of its names in the surface, and a
    docstring.
    """
    counted = {x.path for x in surface} | {x.path for x in public_surface.surface(errors=True)}
    names = {}
    for module in gc.MODULES:
        for path, value in exported(module, getattr(gc, module)):
            names.setdefault(value, {name for name in gc.NAMES if getattr(gc, name) is value}).add(path)
    assert len(names) > 300
    for value, paths in names.items():
        assert len(paths & counted) == 1, sorted(paths)
        assert inspect.getdoc(value), sorted(paths)


def exported(prefix, module):
    """Return (path, value) of the functions and classes that `__all__` lists, also in modules of modules."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from exported(f"{prefix}.{name}", value)
        elif callable(value) and getattr(value, "__module__", "").startswith("geomctrl"):
            yield f"{prefix}.{name}", value


def test_overriding_methods_count_once(surface):
    paths = {x.path for x in surface}
    assert "Robot.mass_matrix" in paths
    assert "Robot.frame" in paths, "methods of private base classes"
    assert "groups.LieGroup.exp" in paths
    assert "groups.SE3.exp" not in paths
    assert not any(".of_transforms" in path for path in paths), "modules that a public one imports"
    assert len(paths) == len(surface)


def test_a_leaking_module_is_seen(monkeypatch):
    monkeypatch.setattr(gc.inertia, "__all__", [*gc.inertia.__all__, "check_all"])
    assert "inertia.check_all" in {x.path for x in public_surface.surface()}


def test_every_public_function_says_what_it_does(surface):
    silent = [x.path for x in surface if not inspect.getdoc(x.object)]
    assert len(silent) <= WITHOUT_DOCSTRING, silent
    assert len(silent) >= WITHOUT_DOCSTRING - SLACK, "fewer by now: lower the number in this file"


def sections_missing(surface):
    """The sections that numpydoc expects and that the docstrings lack, as "path: section".

    An example may be that of the class or, for `papers`, of the module, if it names the function. Protocols and Robot
    have no constructor that users call.
    """
    classes = {x.path: x.object for x in surface if isinstance(x.object, type)}
    for x in surface:
        doc, (owner, _, name) = inspect.getdoc(x.object) or "", x.path.rpartition(".")
        has = {section for section in SECTIONS if re.search(rf"^{section}\n-+$", doc, re.MULTILINE)}
        signature, called = inspect.signature(x.object), not getattr(x.object, "_is_protocol", x.object is gc.Robot)
        if called and set(signature.parameters) - {"self", "cls", "robot"} and not has & {"Parameters", "Attributes"}:
            yield f"{x.path}: Parameters"
        section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", doc, re.MULTILINE | re.DOTALL)
        if called and section:
            lines = re.findall(r"^\S.*", section[1], re.MULTILINE)
            named = {"self", "cls", *OWNERS, *re.findall(r"\w+", ",".join(line.partition(" : ")[0] for line in lines))}
            single = [p for p, given in signature.parameters.items() if given.kind is not given.VAR_KEYWORD]
            yield from (f"{x.path}: {p}" for p in single if p not in named)
        nothing = isinstance(x.object, type) or signature.return_annotation in (None, "None", inspect.Signature.empty)
        if not nothing and not has & {"Returns", "Yields"}:
            yield f"{x.path}: Returns"
        shown = [inspect.getdoc(classes.get(owner)) or ""]
        shown += [inspect.getmodule(x.object).__doc__ or ""] if x.part == "papers" else []
        calls = rf"^ *(>>>|\.\.\.) .*\b{name}\b" if x.part == "papers" else rf"^ *(>>>|\.\.\.) .*\b{name}\("
        if "Examples" not in has and not any(re.search(calls, text, re.MULTILINE) for text in shown):
            yield f"{x.path}: Examples"


def test_every_public_docstring_has_its_sections(surface):
    assert list(sections_missing(surface)) == []


def test_a_parameter_without_a_line_is_seen():
    def half(x: float, y: float, *, z: float) -> None:
        """Do nothing.

        Parameters
        ----------
        x, z : float
            Numbers; y is no more than a word here.

        Examples
        --------
        >>> half(1.0, 2.0, z=3.0)
        """

    assert list(sections_missing([public_surface.Public("half", "", half)])) == ["half: y"]


def test_a_docstring_without_sections_is_seen():
    def bare(x: float) -> float:
        """Return x."""
        return x

    lines = set(sections_missing([public_surface.Public("bare", "", bare)]))
    assert lines == {"bare: Parameters", "bare: Returns", "bare: Examples"}
