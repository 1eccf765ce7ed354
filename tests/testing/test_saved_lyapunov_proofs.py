"""Saved proofs are checked against the given law, robot and claim; only their boxes are read from the file."""

import numpy as np
import pytest

from geomctrl import controllers, models, testing
from geomctrl.control.references import hold
from geomctrl.errors import ArgumentError

pytest.importorskip("flint")
ARM, Q_D = models.two_link(), np.array([0.5, 1.0])
LAW = controllers.Passivity(ARM, hold(ARM, Q_D), 5.0, 20.0, strict=True)
BOX, CLAIM = (0.5, 1.0), {"parameters": 0.1, "outside": 0.1}
REFUSED = testing.CheckError, ArgumentError


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    result = testing.certify_lyapunov(LAW, ARM, BOX, **CLAIM, levels=False)
    path = result.save(tmp_path_factory.mktemp("proofs") / "proof.npz")
    with np.load(path) as file:
        return dict(file)


@pytest.fixture
def written(tmp_path):
    def write(fields):
        np.savez(tmp_path / "other.npz", **fields)
        return tmp_path / "other.npz"

    return write


def recheck(path, **other):
    return testing.recheck_lyapunov(path, LAW, ARM, **{"box": BOX, **CLAIM, **other})


def test_the_file_holds_boxes_and_words_and_is_confirmed(proof, written):
    assert set(proof) == {"words", "0_lo", "0_hi", "1_lo", "1_hi"}
    assert recheck(written(proof)).startswith("confirmed with python-flint: 2 inequalities")


@pytest.mark.parametrize("field", ["words", "0_lo", "0_hi", "1_lo", "1_hi"])
def test_every_field_that_is_missing_is_missed(proof, written, field):
    with pytest.raises(REFUSED):
        recheck(written({k: x for k, x in proof.items() if k != field}))


@pytest.mark.quick(2)
@pytest.mark.parametrize("field", ["0_lo", "0_hi", "1_lo", "1_hi"])
def test_every_number_that_leaves_a_gap_is_seen(proof, written, field):
    """For each field, every bound of the domain and another one: moved inwards, nan, infinite."""
    x, inwards = proof[field], 1e-3 if field.endswith("lo") else -1e-3
    flipped = [(int(np.argmin(np.abs(x[:, k] - (x[:, k].min() if inwards > 0 else x[:, k].max())))), k)
               for k in range(4)]  # fmt: skip
    for row, k in flipped:
        for value in (x[row, k] + inwards, np.nan, -inwards * np.inf):
            other = x.copy()
            other[row, k] = value
            with pytest.raises(REFUSED):
                recheck(written(proof | {field: other}))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: {"words": p["words"][:0]},
        lambda p: {"words": p["words"][:1]},
        lambda p: {"words": p["words"][::-1]},
        lambda p: {"words": np.array([*p["words"], "V = 0"])},
        lambda p: {"words": np.array([p["words"][0], "V' < 1e9"])},
        lambda p: {"words": np.array([1.0, 2.0])},
        lambda p: {"1_lo": p["1_lo"][:0], "1_hi": p["1_hi"][:0]},
        lambda p: {"1_lo": p["1_lo"][:-1], "1_hi": p["1_hi"][:-1]},
        lambda p: {"1_lo": p["1_lo"][:, :-1], "1_hi": p["1_hi"][:, :-1]},
        lambda p: {"1_lo": p["1_lo"].astype(complex)},
        lambda p: {"2_lo": p["1_lo"]},
        lambda p: {"allowed": np.array(1e9)},
        lambda p: {"0_lo": p["1_lo"][:1], "0_hi": p["1_hi"][:1]} if len(p["1_lo"]) > 1 else {"0_lo": p["0_lo"][:0]},
    ],
)
def test_other_fields_than_those_of_the_claim_are_refused(proof, written, change):
    with pytest.raises(REFUSED):
        recheck(written(proof | change(proof)))


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    "other",
    [
        {"rate": 1.0},
        {"offset": 5.0},
        {"outside": 0.01},
        {"parameters": 0.3},
        {"box": testing.Box(*BOX, equilibrium=Q_D + 0.1)},
        {"level": 0.1},
    ],
)
def test_a_proof_of_another_claim_is_refused(proof, written, other):
    with pytest.raises(REFUSED):
        recheck(written(proof), **other)


def test_a_proof_of_another_law_robot_or_box_is_refused(proof, written):
    class Pushed(controllers.Passivity):
        def __call__(self, t, q, v, z):
            command = super().__call__(t, q, v, z)
            return command._replace(tau=command.tau + 30.0 * v)

    path = written(proof)
    pushed = Pushed(ARM, hold(ARM, Q_D), 5.0, 20.0, strict=True)
    with pytest.raises(testing.CheckError):
        testing.recheck_lyapunov(path, pushed, ARM, BOX, **CLAIM)
    with pytest.raises(testing.CheckError):
        testing.recheck_lyapunov(path, LAW, ARM.with_parameters(1.5 * ARM.parameters), BOX, **CLAIM)
    with pytest.raises(testing.CheckError):
        testing.recheck_lyapunov(path, LAW, ARM, (0.6, 1.0), **CLAIM)
    with pytest.raises(ArgumentError, match="controller, plant, box: expected those of the proof"):
        testing.recheck_lyapunov(path)
