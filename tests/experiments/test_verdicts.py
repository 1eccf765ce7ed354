"""The table of right and wrong closed loops: a part of it, and the page that shows all of it."""

import re

import pytest
from lib import verdict_loops, wrong_loops
from studies import verdicts

RIGHT = (
    "Passivity on its reference, panda",
    "Passivity on its reference, two_link",
    "PDGravity from rest, scara",
    "SlotineLi, a payload unknown",
    "SigmaModification, a payload unknown",
    "sliding mode on its surface",
    "Passivity held for 1 ms, panda",
    "SlotineLi held, every 7th sample stored",
    "ComputedTorque held, behind a delay",
    "gains too stiff for the step",
    "on the reference, adaptive method",
    "a wrench switched between samples",
)
WRONG = (
    "a load of 1e-06 kg unknown, panda",
    "friction of 1e-06 N m s/rad unknown",
    "gravity short by 0.0001 %",
    "an estimate that forgets, called exact",
    "damping negative by 0.0001 N m s/rad",
    "V with a step upwards at q1 = 0.5",
    "V that is not finite",
    "Mdot - 2C off skew by 1e-08, panda",
    "springs whose energy is off by 1e-05",
    "held too long, 50 ms",
    "adaptation of the wrong sign, held",
    "a load unknown, every 10th sample stored",
    "a load unknown, adaptive method",
)


@pytest.fixture(scope="module")
def loops():
    return {loop.name: loop for kind in (verdict_loops.right, wrong_loops.wrong) for loop in kind()}


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_monitors_reject_no_right_loop(name, loops):
    verdict, said = verdicts.watched(loops[name])
    assert verdict in ("held", "UNRESOLVED"), said


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_monitors_see_what_is_wrong(name, loops):
    assert verdicts.watched(loops[name])[0] == "VIOLATED"


@pytest.mark.slow
def test_the_page_shows_every_loop_and_every_miss(loops):
    text = verdicts.PAGE.read_text(encoding="utf-8")
    right, wrong = text.split("## Right loops")[1].split("## Wrong loops")
    rows = {kind: re.findall(r"^\| (.*?) \| [0-9.e-]+ \| (\w+) \| (\S+) \| (\S+) \| (\S+) \|", part, re.M)
            for kind, part in (("right", right), ("wrong", wrong))}  # fmt: skip
    assert [row[0] for row in rows["right"]] == [loop.name for loop in verdict_loops.right()]
    assert [row[0] for row in rows["wrong"]] == [loop.name for loop in wrong_loops.wrong()]
    assert min(map(len, rows.values())) >= 60
    assert not [row for row in rows["right"] if {"VIOLATED", "caught"} & set(row)]
    missed = [row[0] for row in rows["wrong"] if not {"VIOLATED", "caught"} & set(row)]
    assert len(missed) <= len(rows["wrong"]) / 30
    printed = text.split("## What was missed")[1].split("## Right loops")[0]
    for name, *said in rows["wrong"]:
        assert (f": {name}\n" in printed) == (said[0] != "VIOLATED"), name


def test_a_right_loop_that_is_rejected_is_named():
    loop = verdict_loops.resting("plain", verdict_loops.Swinging(verdict_loops.ARM))
    silent = dict.fromkeys(verdicts.JUDGES, "-")
    accused = verdicts.Row(loop, silent | {"search": "caught"}, "")
    assert "1 right loops: 1 rejected" in verdicts.page_text([accused], [])
    assert "a right loop rejected: plain, by search" in verdicts.page_text([accused], [])
    assert "by all methods: plain" in verdicts.page_text([], [verdicts.Row(loop, silent, "")])
