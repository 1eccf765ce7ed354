"""Every public callable, every argument, eighteen kinds of bad values: each is refused by an error that names it.

In processes of their own, as a value may kill the one it is given to. Legal forms of numbers give the same results.
"""

import contextlib
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hostile.calls import DEATH, FOREIGN, NAMED, UNNAMED, call, good, verdict, wrong_forms
from hostile.discovery import parameters, public_callables
from hostile.examples import GROUPS, callable_of, examples, left_out
from hostile.values import kind

TESTS = Path(__file__).parents[1]
PARTS = {"terms": 3, "control": 3, "identification": 2}  # parts of a package's substitutions, for several processes
ADD = "tests/hostile/examples/: add to EXAMPLES of the file of its package"
CHUNKS = [(group, k, PARTS.get(group, 1)) for group in GROUPS for k in range(PARTS.get(group, 1))]


def every_example():
    return {name: example for group in GROUPS for name, example in examples(group).items()}


def test_every_public_callable_has_an_example_or_a_reason_to_have_none():
    public, named, without = public_callables(), {callable_of(name) for name in every_example()}, set(left_out())
    new = {n: ", ".join(f'"{p}": ...' for p in parameters(public[n])) for n in sorted({*public} - named - without)}
    lines = [f'    "{name}": Example({{{given}}}),' for name, given in new.items()]
    reason = "with arguments that work, or to its LEFT_OUT with the reason why there is none"
    assert new == {}, f"{ADD}, {reason}:\n" + "\n".join(lines)
    assert sorted((named | without) - {*public}) == [], "not public, or not any more: tests/hostile/examples/"
    assert sorted(named & without) == [], "left out, and with an example: tests/hostile/examples/"
    assert len(named) > 400


def test_every_argument_is_in_an_example():
    public, given = public_callables(), defaultdict(set)
    for name, example in every_example().items():
        given[callable_of(name)] |= set(example.arguments)
    missing = {n: sorted(new) for n in given if (new := set(parameters(public[n])) - given[n])}
    assert missing == {}, f"{ADD} the arguments: {missing}"


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_the_examples_work_and_legal_forms_give_the_same_results(group):
    public, wrong = public_callables(), []
    for name, example in examples(group).items():
        call(public[callable_of(name)], example)
        wrong += [f"{name}({at}={form}): {why}" for at, form, why in wrong_forms(public[callable_of(name)], example)]
    assert wrong == []


@pytest.mark.parametrize(
    "group", [pytest.param(x, marks=() if x in ("lie", "mechanism", "terms") else pytest.mark.slow) for x in GROUPS]
)
def test_huge_numbers_are_refused_or_overflow_without_warnings(group):
    public, wrong = public_callables(), []
    for name, example in examples(group).items():
        if name.startswith(("controllers.", "CompiledLaw.", "testing.lyapunov_at")):  # laws warn as numpy does
            continue
        for at, given in example.arguments.items():
            if kind(value := good(given)) != "array" or at == example.star:
                continue
            for size in (1e160, -1e300):
                came, words = verdict(public[callable_of(name)], example, at, np.full(value.shape, size))
                if came in (FOREIGN, DEATH):
                    wrong.append(f"{name}({at}={size}): {words}")
    assert wrong == []


class Workers:
    """A process that takes parts of groups; if it dies another one starts, because starting takes longer than
    most parts.
    """

    def __init__(self, output):
        self.process, self.output = None, output  # the file with its last output

    def run(self, *arguments):
        """Return '' if the worker finished, otherwise what is known about its death."""
        if self.process is None:
            command, pipe = [sys.executable, "-m", "hostile.worker"], subprocess.PIPE
            with self.output.open("w") as file:
                self.process = subprocess.Popen(command, cwd=TESTS, stdin=pipe, stdout=pipe, stderr=file, text=True)
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(arguments), file=self.process.stdin, flush=True)
        return "" if self.process.stdout.readline() == "done\n" else self.stop()

    def stop(self):
        """Return its last output, or its exit status."""
        if self.process is None:
            return ""
        process, self.process = self.process, None
        with contextlib.suppress(BrokenPipeError), process:
            process.stdin.close()
            process.wait(timeout=600)
        return self.output.read_text(errors="replace").strip() or f"exit status {process.returncode}"


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    workers = Workers(tmp_path_factory.mktemp("hostile") / "output.txt")
    yield workers
    workers.stop()


def outcomes(workers, group, number, of, folder):
    """Return [name, argument, bad value, outcome, description] of a part of the substitutions of a group; deaths are
    outcomes.
    """
    out, first, result = folder / f"{group}{number}.jsonl", 0, []
    for _ in range(20):  # processes that died
        why = workers.run(group, number, of, str(out), first)
        lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
        result = [line[1:] for line in lines if len(line) == 6]
        if not why:
            return result
        assert lines, why
        first, *last = lines[-1]
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps([first, *last[:3], DEATH, why.splitlines()[0]]) + "\n")
    raise AssertionError(f"{group}: the process died 20 times: {result[-1]}")


@pytest.mark.slow
@pytest.mark.parametrize(("group", "number", "of"), CHUNKS)
def test_bad_values_are_refused_by_name(group, number, of, workers, tmp_path):
    result = outcomes(workers, group, number, of, tmp_path)
    count = Counter(came for *_, came, _ in result)
    bad = [f"{came}: {name}({at}={what}): {words}" for name, at, what, came, words in result if came != NAMED]
    worse = [line for line in bad if not line.startswith(UNNAMED)]
    assert worse == [], f"{dict(count)}\n" + "\n".join(worse)
    assert count[UNNAMED] <= 0.01 * len(result), "\n".join(bad)
