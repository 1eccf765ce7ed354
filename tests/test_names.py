"""Forbidden names: a variable, parameter or attribute has a name that says what it holds."""

import ast
from pathlib import Path

from syntax_trees import tree

ROOT = Path(__file__).parents[1]
NO_NAMES = {"at", "beside", "far", "few", "found", "given", "known", "made", "most", "sure", "told", "what", "words"}
# arguments and fields that read well where they are used: external_forces(at=3), Port(at="hand")
EXCEPTIONS = {
    ("geomctrl/control/run.py", "at"),
    ("geomctrl/terms/bounding/closed_form.py", "far"),
    ("geomctrl/testing/settings.py", "at"),
    ("geomctrl/viewing/samples.py", "at"),
}


def assigned(module):
    """Yield every name that the code assigns."""
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_what_assigns_is_seen():
    code = (
        "found = 1\nfor what in x: pass\ndef f(given, *, known=2): self.told = [at for at in f]\nwith a as made: pass"
    )
    assert {*assigned(ast.parse(code))} >= {"found", "what", "given", "known", "told", "at", "made"}


def test_variables_have_names():
    bad = {
        (path.relative_to(ROOT).as_posix(), name)
        for top in ("geomctrl", "models", "controllers")
        for path in (ROOT / top).rglob("*.py")
        for name in assigned(tree(path))
        if name.lower() in NO_NAMES
    }
    assert sorted(bad - EXCEPTIONS) == []
    assert sorted(EXCEPTIONS - bad) == [], "named well by now: take them off the list"
