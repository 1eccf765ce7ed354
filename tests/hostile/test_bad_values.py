"""Every public callable, every argument, fifteen kinds of bad values: each is refused by an error that names it.

In processes of their own, as a value may kill the one it is given to. Legal forms of numbers give the same results.
"""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hostile.calls import DEATH, NAMED, UNNAMED, call, wrong_forms
from hostile.discovery import parameters, public_callables
from hostile.examples import ROOMS, callable_of, examples, left_out

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]
PARTS = {"terms": 3, "control": 3, "identification": 2}  # of a room, for several processes
CHUNKS = [(room, k, PARTS.get(room, 1)) for room in ROOMS for k in range(PARTS.get(room, 1))]


def every_example():
    return {name: example for room in ROOMS for name, example in examples(room).items()}


def test_every_public_callable_has_an_example_or_a_reason_to_have_none():
    public, named, without = set(public_callables()), {callable_of(name) for name in every_example()}, set(left_out())
    assert sorted(public - named - without) == [], "no example of these"
    assert sorted((named | without) - public) == [], "not public, or not any more"
    assert sorted(named & without) == [], "left out, and with an example"
    assert len(named) > 400


def test_every_argument_is_in_an_example():
    public, given = public_callables(), defaultdict(set)
    for name, example in every_example().items():
        given[callable_of(name)] |= set(example.arguments)
    assert {n: missing for n in given if (missing := set(parameters(public[n])) - given[n])} == {}


@pytest.mark.parametrize("room", ROOMS)
def test_the_examples_work_and_legal_forms_give_the_same_results(room):
    public, wrong = public_callables(), []
    for name, example in examples(room).items():
        call(public[callable_of(name)], example)
        wrong += [f"{name}({at}={form}): {why}" for at, form, why in wrong_forms(public[callable_of(name)], example)]
    assert wrong == []


def outcomes(room, number, of, folder):
    """[name, argument, bad value, what came, in words] of a part of a room's substitutions; deaths are outcomes."""
    out, first, found = folder / f"{room}{number}.jsonl", 0, []
    for _ in range(20):  # deaths
        command = [sys.executable, "-m", "hostile.worker", room, str(number), str(of), str(out), str(first)]
        done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=600)
        lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        found = [line[1:] for line in lines if len(line) == 6]
        if lines and lines[-1] == ["end"]:
            return found
        assert lines, done.stderr
        first, *last = lines[-1]
        why = (done.stderr or f"exit status {done.returncode}").strip().splitlines()
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps([first, *last, DEATH, why[0] if why else ""]) + "\n")
    raise AssertionError(f"{room}: dies again and again: {found[-1]}")


@pytest.mark.parametrize(("room", "number", "of"), CHUNKS)
def test_bad_values_are_refused_by_name(room, number, of, tmp_path):
    found = outcomes(room, number, of, tmp_path)
    count = Counter(came for *_, came, _ in found)
    bad = [f"{came}: {name}({at}={what}): {words}" for name, at, what, came, words in found if came != NAMED]
    worse = [line for line in bad if not line.startswith(UNNAMED)]
    assert worse == [], f"{dict(count)}\n" + "\n".join(worse)
    assert count[UNNAMED] <= 0.01 * len(found), "\n".join(bad)
