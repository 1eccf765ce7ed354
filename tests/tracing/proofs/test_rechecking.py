"""Saved proofs are confirmed by the independent check, and rejected after tampering."""

import builtins
import json
import re

import numpy as np
import pytest

from geomctrl import testing
from geomctrl.errors import ArgumentError
from geomctrl.tracing.proofs.rechecking import uncovered


def bowl(x):
    return 0.1 * x[0] ** 3 + np.sin(x[1]) * x[0] * 0.5 - x[0] ** 2 - x[1] ** 2


@pytest.fixture(scope="module")
def proof():
    certificate = testing.certify(bowl, [(-1.0, 1.0), (-2.0, 2.0)], outside=0.1, strict=True)
    assert certificate, certificate
    assert len(certificate.settled[0]) > 20
    return certificate._arrays()


def test_a_proof_is_saved_and_confirmed(tmp_path):
    certificate = testing.certify(bowl, [(-1.0, 1.0), (-2.0, 2.0)], outside=0.1)
    path = certificate.save(tmp_path / "bowl.npz")
    again = testing.recheck(path)
    assert again, again
    assert again.boxes == len(certificate.settled[0])
    assert testing.recheck(certificate)


def test_several_processes_find_the_same(proof):
    seen = []
    assert testing.recheck(Tampered(proof), processes=2, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    said = json.loads(proof["claim"])
    said["nodes"][said["outputs"][0]] = ["const", (1.0).hex()]
    bad = Tampered({**proof, "claim": json.dumps(said)})
    assert testing.recheck(bad, processes=2).reason == testing.recheck(bad).reason is not None


class Tampered:
    def __init__(self, proof):
        self.proof = proof

    def _arrays(self):
        return self.proof


def tampered(proof, **changes):
    return testing.recheck(Tampered({**proof, **changes}))


def test_a_box_that_is_missing_is_missed(proof):
    for k in (0, len(proof["lo"]) // 2, -1):
        lo, hi = (np.delete(proof[name], k, axis=0) for name in ("lo", "hi"))
        assert re.match("no box covers", tampered(proof, lo=lo, hi=hi).reason)


@pytest.mark.parametrize("k", [0, -1])
def test_a_box_or_a_domain_that_is_empty_is_no_part_of_a_proof(proof, k):
    """However well the other boxes cover the domain; and for an empty domain, with any claim."""
    lo, hi = (np.concatenate([proof[name], proof[name][k:][:1]]) for name in ("lo", "hi"))
    assert tampered(proof, lo=lo, hi=hi)  # the same box twice
    lo[-1, 0], hi[-1, 0] = hi[-1, 0], lo[-1, 0]
    assert tampered(proof, lo=lo, hi=hi).reason == "a box is empty or infinite"
    with pytest.raises(ArgumentError, match="proof: expected what"):
        tampered(proof, domain=proof["domain"][::-1])


@pytest.mark.parametrize("side", ["lo", "hi"])
def test_a_box_that_has_shrunk_by_an_ulp_leaves_a_gap(proof, side):
    ends = proof[side].copy()
    inside = np.argwhere(np.abs(ends[:, 0]) < 1.0)[0, 0]
    ends[inside, 0] = np.nextafter(ends[inside, 0], np.inf if side == "lo" else -np.inf)
    assert re.match("no box covers", tampered(proof, **{side: ends}).reason)


def test_other_code_is_not_what_was_proved(proof):
    said = json.loads(proof["claim"])
    minus = [k for k, node in enumerate(said["nodes"]) if node[0] == "sub" and k <= said["outputs"][0]]
    assert len(minus) == 2  # - x0^2 - x1^2
    for k in minus:
        said["nodes"][k][0] = "add"
        assert re.match("f is not shown", tampered(proof, claim=json.dumps(said)).reason), said["nodes"][k]
        said["nodes"][k][0] = "sub"


def test_a_larger_domain_is_not_covered(proof):
    assert re.match("no box covers", tampered(proof, domain=proof["domain"] * 1.01).reason)


def test_a_strict_claim_is_checked_strictly():
    """-(3 x - 1)^2 is zero at 1/3."""
    certificate = testing.certify(lambda x: -((3.0 * x[0] - 1.0) ** 2), [(0.0, 1.0)])
    said = json.loads(certificate._arrays()["claim"])
    assert testing.recheck(certificate)
    assert re.match(
        "f is not shown to be < 0", tampered(certificate._arrays(), claim=json.dumps({**said, "strict": True})).reason
    )


def test_a_constraint_is_no_excuse_elsewhere(proof):
    """Of a proof outside a ball, without the ball."""
    said = json.loads(proof["claim"])
    without = json.dumps({**said, "outputs": said["outputs"][:1]})
    assert re.match("f is not shown", tampered(proof, claim=without).reason)


def test_nonsense_is_no_proof(tmp_path, proof):
    path = tmp_path / "proof.npz"
    path.write_bytes(b"PK nonsense")
    for given in (path, 3.0, testing.certify(lambda x: x[0] - 1.0, [(0.0, 2.0)])):
        with pytest.raises(ArgumentError):
            testing.recheck(given)
    with pytest.raises(ArgumentError, match="proof: expected what"):
        tampered(proof, lo=proof["lo"][:-1])
    said = json.loads(proof["claim"])
    said["nodes"][0] = ["add", 5, 6]
    with pytest.raises(ArgumentError, match="proof: expected what"):
        tampered(proof, claim=json.dumps(said))
    with pytest.raises(ArgumentError, match="proof: no such file"):
        testing.recheck(tmp_path / "none.npz")


def said_with(**changes):
    return lambda proof: {"claim": json.dumps({**json.loads(proof["claim"]), **changes})}


def node_with(op, *rest):
    """The first operation of that name with other operands."""

    def change(proof):
        said = json.loads(proof["claim"])
        next(node for node in said["nodes"] if node[0] == op)[1:] = rest
        return {"claim": json.dumps(said)}

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (said_with(outputs=[]), "outputs"),
        (said_with(outputs=[-1]), "outputs"),
        (said_with(outputs=[1e5]), "outputs"),
        (said_with(outputs=[99999]), "outputs"),
        (said_with(outputs=[True]), "outputs"),
        (said_with(outputs="ab"), "outputs"),
        (said_with(flag=-1), "outputs, flag"),
        (said_with(format=True), "format True"),
        (said_with(format=1.0), "format 1.0"),
        (said_with(strict=0), "strict: 0"),
        (said_with(coordinates=[[1, 0], [1, 0]]), "twice"),
        (lambda proof: {"claim": proof["claim"].replace("{", '{"outputs": [0], ', 1)}, "a key that is there twice"),
        (node_with("const", "0x1p+99999"), "expected a number, got '0x1p"),
        (node_with("const", "0x"), "expected a number, got '0x'"),
        (node_with("const", 2.0), "expected a number, got 2.0"),
        (node_with("const"), ""),
        (node_with("mul", 0, -1), "depends on a later one, or on none"),
        (node_with("mul", 0, 0.5), "depends on a later one, or on none"),
        (node_with("mul", 0), ""),
        (node_with("sin", 0, 0), ""),
        (node_with("load", 0, 7), r"no input \(0, 7\)"),
        (node_with("load", 1, -1), "no input"),
        (lambda proof: {"claim": proof["claim"].replace('"sin"', '"sine"')}, "sine"),
        (lambda proof: {"lo": proof["lo"].astype(str)}, "lo: expected an array of floats, got <U"),
        (lambda proof: {"hi": proof["hi"].astype(complex)}, "hi: expected an array of floats, got complex"),
        (lambda proof: {"domain": proof["domain"].astype(object)}, "domain: expected an array of floats, got object"),
    ],
)
def test_what_is_wrong_with_an_edited_proof_is_named(proof, change, reason):
    with pytest.raises(ArgumentError, match=rf"proof: expected what .*Tampered.*{reason}"):
        tampered(proof, **change(proof))


def test_without_flint_the_error_names_the_extra(monkeypatch, proof):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "flint":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"geomctrl\[certify\]"):
        tampered(proof)


FUNCTIONS = {
    "tan": lambda x: np.tan(x[0]) - 2.0 * x[0] - 0.4,
    "exp": lambda x: np.exp(x[0]) * x[1] - np.exp(x[0] + x[1]),
    "log": lambda x: np.log(2.0 + x[0]) - 0.7 - x[0] / 2.0,
    "asin": lambda x: np.arcsin(x[0] / 2.0) + np.arccos(x[1] / 3.0) - 3.0,
    "atan2": lambda x: np.arctan2(x[1], 1.1 + x[0]) - 1.6 * np.abs(x[1]) - 0.8,
    "tanh": lambda x: np.tanh(3.0 * x[0] * x[1]) - 1.0,
    "sqrt": lambda x: np.sqrt(1.0 + x[0] ** 2) - np.abs(x[0]) - 1.0001,
    "min": lambda x: np.minimum(x[0], -x[0]) * np.maximum(x[1], 0.5) - 0.01 * x[1] - 0.011,
    "where": lambda x: np.where(x[0] > x[1], x[1] - x[0], x[0] - x[1]) ** 3 - 0.01,
    "div": lambda x: x[0] / (2.0 + x[1]) - 1.3 + 0.29 * x[1] ** 2,
    "cos": lambda x: np.cos(3.0 * x[0]) * np.cos(x[1]) ** 2 - 1.001,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_operation_is_confirmed(name):
    box = [(-0.4, 0.9), (-0.7, 1.0)]
    certificate = testing.certify(FUNCTIONS[name], box, budget=100_000)
    assert certificate, certificate
    again = testing.recheck(certificate)
    assert again, again


def test_covers():
    domain = np.array([[0.0, 0.0], [1.0, 2.0]])
    whole, half = np.array([[0.0, 0.0]]), np.array([[1.0, 2.0]])
    assert uncovered(domain, whole, half) is None
    assert uncovered(domain, np.array([[0.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0], [1.0, 2.0]])) is None
    assert uncovered(domain, np.array([[0.0, 0.0], [0.0, 1.1]]), np.array([[1.0, 1.0], [1.0, 2.0]]))
    assert uncovered(domain, np.array([[0.0, np.nan]]), half)
    assert uncovered(domain, np.empty((0, 2)), np.empty((0, 2)))
    with_empty = np.vstack([whole, half]), np.vstack([half, whole])  # the second one from 1 down to 0
    assert uncovered(domain, *with_empty) == "a box is empty or infinite"


def test_constraints_help_a_proof_on_their_own_side_only(tmp_path):
    """f = 0.5 - x <= f - g for g = x - 2 >= 0 only: on the box g < 0, where f + g < 0 says nothing about f."""
    path = testing.certify(lambda x: 0.5 - x[0], [(0.6, 1.0)], where=[lambda x: x[0] - 2.0]).save(tmp_path / "p.npz")
    assert testing.recheck(path)
    arrays, wide = dict(np.load(path)), np.array([[0.0], [1.0]])
    np.savez(path, **{**arrays, "domain": wide, "lo": wide[:1], "hi": wide[1:]})
    assert not testing.recheck(path)
