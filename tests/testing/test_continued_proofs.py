"""Certificates that are interrupted, resumed, estimated before they start, and spread over processes."""

import pickle
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from testing.linear_loops import SLIDER

import geomctrl as gc
from geomctrl import controllers, references, testing
from geomctrl.control.sweeping.executors import processes
from geomctrl.errors import ArgumentError
from geomctrl.testing.certificates.resuming import earlier_boxes
from geomctrl.testing.certificates.task import Task
from geomctrl.testing.tubes.barrier_claims import BarrierClaim
from geomctrl.testing.tubes.held import _SampledLoop
from geomctrl.tracing.proofs.forms import BoundedClaim
from geomctrl.tracing.proofs.rechecking import uncovered

ARM = gc.models.two_link()
BOX = 1.0, 2.0
CLAIM = {"outside": 0.05, "parameters": 0.2, "levels": False}


def law(K=20.0):
    return controllers.Passivity(ARM, references.hold(ARM, [0.5, 1.0]), Lambda=5.0, K=K, strict=True)


def certified(budget, K=20.0, **options):
    return testing.certify_lyapunov(law(K), ARM, BOX, **{**CLAIM, **options}, budget=budget)


@pytest.fixture(scope="module")
def whole():
    """The claim proved at once."""
    return certified(100_000)


class Interrupt:
    """A progress function that stands for Ctrl-C at its n-th call."""

    def __init__(self, n):
        self.left = n

    def __call__(self, fraction):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


class Serial:
    """An executor that computes at once, from arguments and with results that were pickled."""

    _max_workers = 1

    def __init__(self):
        self.calls = 0

    def submit(self, function, *arguments):
        self.calls += 1
        function, arguments = pickle.loads(pickle.dumps((function, arguments)))
        future = Future()
        future.set_result(pickle.loads(pickle.dumps(function(*arguments))))
        return future


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(Task, "chunk", 16)
    monkeypatch.setattr(Task, "pilot", 32)


@pytest.mark.usefixtures("small_chunks")
def test_an_interrupt_leaves_an_undecided_certificate_that_can_be_resumed():
    stopped = certified(100_000, progress=Interrupt(3))
    assert stopped.status == "undecided"
    assert "stopped by an interrupt" in str(stopped)
    assert 0.0 < stopped.claims[1].outcome.share_left < 1.0
    resumed = certified(testing.Budget(resume=stopped))
    assert resumed.proved
    assert testing.recheck_lyapunov(resumed)


def test_an_interrupt_before_the_boxes_is_undecided_too(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("geomctrl.testing.certificates.request.search", interrupted)
    assert certified(1000).status == "undecided"


@pytest.mark.usefixtures("small_chunks")
def test_an_undecided_certificate_is_resumed_from_its_file_and_is_no_proof(tmp_path):
    path = certified(64).save(tmp_path / "half.npz")
    with pytest.raises(testing.CheckError, match="undecided"):
        testing.recheck_lyapunov(path, law(), ARM, BOX, outside=0.05, parameters=0.2)
    assert certified(testing.Budget(resume=path)).proved


def test_boxes_of_a_right_claim_prove_no_wrong_one(whole):
    """Less damping: a search refutes nothing in so few boxes, and the boxes of the right claim are not trusted."""
    assert whole.proved
    assert not certified(testing.Budget(boxes=1_000, resume=whole), K=2.0).proved


def test_boxes_that_do_not_cover_the_domain_are_refused(whole, tmp_path):
    path = whole.save(tmp_path / "proof.npz")
    arrays = dict(np.load(path))
    for end in ("lo", "hi"):
        arrays[f"1_{end}"] = arrays[f"1_{end}"][1:]
    np.savez(path, **arrays)
    with pytest.raises(ArgumentError, match=r"resume: .* do not cover"):
        certified(testing.Budget(resume=path))
    with pytest.raises(ArgumentError, match=r"resume: .* do not cover"):  # boxes of a smaller box
        testing.certify_lyapunov(law(), ARM, (1.1, 2.0), **CLAIM, budget=testing.Budget(resume=whole))


def test_files_that_are_no_boxes_are_refused(tmp_path):
    path = tmp_path / "other.npz"
    with pytest.raises(ArgumentError, match="no such file"):
        certified(testing.Budget(resume=path))
    np.savez(path, words=np.arange(3))
    with pytest.raises(ArgumentError, match="resume: expected"):
        certified(testing.Budget(resume=path))
    with pytest.raises(ArgumentError, match="resume: expected"):
        testing.Budget(resume=3)


@pytest.mark.parametrize("parameters", [0.2, 0.215])
def test_the_estimate_of_a_pilot_is_the_number_of_boxes_within_a_factor_of_four(parameters, whole):
    pilot = certified(60, parameters=parameters)
    proof = whole if parameters == CLAIM["parameters"] else certified(100_000, parameters=parameters)
    assert proof.proved
    assert proof.more_boxes == 0.0
    assert "estimated" in str(pilot)
    assert 0.25 < (pilot.boxes + pilot.more_boxes) / proof.boxes < 4.0


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.slow
def test_other_processes_decide_the_boxes():
    executor = Serial()
    spread = certified(testing.Budget(executor=executor), parameters=0.215)
    assert spread.proved
    assert executor.calls > 1
    limited = certified(testing.Budget(boxes=200, executor=executor), parameters=0.215)
    assert limited.status == "undecided"
    assert limited.boxes < 400
    assert certified(testing.Budget(resume=limited), parameters=0.215).proved


@pytest.mark.usefixtures("small_chunks")
def test_a_wrong_claim_is_not_proved_by_other_processes():
    assert not certified(testing.Budget(boxes=1_000, executor=Serial()), K=2.0).proved


@pytest.mark.slow
@pytest.mark.usefixtures("small_chunks")
def test_processes_of_this_machine_decide_the_boxes():
    with processes(2) as executor:
        assert certified(testing.Budget(executor=executor), parameters=0.215).proved


def test_executors_that_can_not_be_used_are_refused():
    with ThreadPoolExecutor(1) as threads, pytest.raises(ArgumentError, match="threads"):
        certified(testing.Budget(executor=threads))
    with pytest.raises(ArgumentError, match="submit"):
        certified(testing.Budget(executor=2))
    budget = testing.Budget(resume="half.npz")
    with pytest.raises(ArgumentError, match=r"budget: .*`resume`"):
        testing.largest_certified_control_dt(law(), ARM, (0.1, 0.5), outside=(0.08, 0.4), budget=budget)


def slider(brake=3.2):
    """Arguments of `certify_barrier`: the slider brakes with `brake` m/s^2, and h allows for 3 m/s^2."""
    force, x = brake * float(SLIDER.mass_matrix(np.zeros(1))[0, 0]), (np.array([-1.0, 0.1]), np.array([1.0, 2.0]))

    def h(t, q, v, z, plant):
        return 1.0 - q[0] - v[0] ** 2 / 6.0

    def law(t, q, v, z):
        return gc.Command(np.clip(20.0 * h(t, q, v, z, None) * np.ones(1) - force, -force, force))

    return h, law, SLIDER, x


PROOFS = {
    "barrier": lambda **options: testing.certify_barrier(*slider(), **options),
    "held barrier": lambda **options: testing.certify_barrier(*slider(), control_dt=0.01, **options),
    "sampled": lambda **options: testing.certify_sampled(law(), ARM, (0.1, 0.5), 0.001, outside=(0.08, 0.4), **options),
}


@pytest.mark.parametrize("name", PROOFS)
def test_other_proofs_are_estimated_interrupted_saved_resumed_and_spread(name, tmp_path, monkeypatch):
    certify = PROOFS[name]
    whole = certify()
    assert whole
    pilot = certify(budget=whole.boxes // 3)
    assert pilot.status == "undecided"
    assert 0.2 < (pilot.boxes + pilot.more_boxes) / whole.boxes < 5.0
    assert "estimated" in str(pilot)
    stopped = certify(progress=Interrupt(8))  # the first chunks have 1, 2, 4, ... boxes
    assert stopped.status == "undecided"
    assert "stopped by an interrupt" in str(stopped)
    assert 0.0 < stopped.share_left < 1.0
    assert certify(budget=testing.Budget(resume=stopped.save(tmp_path / "half.npz")))
    monkeypatch.setattr(_SampledLoop if name == "sampled" else BarrierClaim, "pilot", 16)
    executor = Serial()
    assert certify(budget=testing.Budget(executor=executor))
    assert executor.calls


def ridge(x):
    """Not positive, and zero on a curve that many boxes touch."""
    return 2.0 * x[0] * x[1] - x[0] ** 2 - x[1] ** 2 - 1e-4


def test_certify_is_estimated_interrupted_saved_resumed_and_spread(tmp_path, monkeypatch):
    box = [(-1.0, 1.0), (-1.0, 1.0)]
    whole = testing.certify(ridge, box)
    assert whole
    assert 0.1 < whole.estimate / whole.boxes < 10.0
    with pytest.raises(KeyboardInterrupt) as interrupt:
        testing.certify(ridge, box, progress=Interrupt(2))
    stopped = interrupt.value.certificate
    assert stopped.status == "undecided"
    assert "estimated" in str(stopped)
    path = stopped.save(tmp_path / "open.npz")
    with pytest.raises(ArgumentError, match="proof"):
        testing.recheck(path)
    for resume in (stopped, path):
        assert testing.certify(ridge, box, budget=testing.Budget(resume=resume))
        assert testing.certify(lambda x: ridge(x) + 2e-4, box, budget=testing.Budget(resume=resume)).status == "refuted"
        with pytest.raises(ArgumentError, match="resume: expected"):
            testing.certify(ridge, [(-1.0, 1.1), (-1.0, 1.0)], budget=testing.Budget(resume=resume))
    monkeypatch.setattr(BoundedClaim, "pilot", 100)
    executor = Serial()
    spread = testing.certify(ridge, box, budget=testing.Budget(executor=executor))
    assert spread
    assert executor.calls > 1
    assert testing.recheck(spread)
    assert testing.certify(ridge, box, budget=testing.Budget(400, executor=executor)).status == "undecided"
    false = testing.certify(lambda x: ridge(x) + 1.5e-4, box, budget=testing.Budget(executor=executor))
    assert false.status == "refuted"


def hill(x):
    """Positive for 1.3 < x < 1.35 only."""
    return (x[0] - 1.3) * (1.35 - x[0])


def test_boxes_that_reach_beyond_the_claim_are_decided_within_it(tmp_path):
    path = tmp_path / "open.npz"
    np.savez(path, open_lo=[[0.0], [1.0]], open_hi=[[1.0], [2.0]])
    budget = testing.Budget(resume=path)
    assert testing.certify(hill, [(0.0, 1.5)], budget=budget).status == "refuted"
    assert testing.certify(hill, [(0.0, 1.25)], budget=budget)


def test_boxes_of_certificates_reach_beyond_the_claim_too(tmp_path):
    path, whole = tmp_path / "half.npz", (np.zeros((1, 1)), np.full((1, 1), 1.5))
    np.savez(path, words=["V' < 0"], **{"0_lo": [[0.0], [1.0], [1.5]], "0_hi": [[1.0], [2.0], [2.0]]})
    lo, hi = earlier_boxes(path, "V' < 0", SimpleNamespace(starts=whole))
    assert uncovered(np.array([[0.0], [1.5]]), lo, hi) is None
    assert hi.max() == 1.5
    assert len(lo) == 2


def test_tubes_are_interrupted_resumed_and_spread():
    x0, t_end = np.array([0.4, 1.1, 0.0, 0.0]), 0.25
    arguments = ARM, law(), (x0 - 0.25, x0 + 0.25), t_end
    whole = testing.reach(*arguments)
    assert whole
    assert len(whole.pieces) > 1

    seen = []

    def interrupt(fraction):
        assert fraction >= max(seen, default=0.0)
        seen.append(fraction)
        if len(set(seen)) < len(seen) and fraction > seen[-2] > 0.5:  # in the second half, after the whole box
            raise KeyboardInterrupt

    stopped = testing.reach(*arguments, progress=interrupt)
    assert stopped.interrupted
    assert not stopped
    resumed = testing.reach(*arguments, budget=testing.Budget(resume=stopped))
    assert resumed
    assert len({id(x) for x in resumed.pieces} & {id(x) for x in stopped.pieces}) >= 1
    late = testing.reach(*arguments, budget=testing.Budget(seconds=0.01))
    assert late.out_of_time
    assert not late
    assert "stopped by `seconds`" in late.summary()
    corners = late.lower.min(), late.upper.max()
    assert corners == (whole.lower.min(), whole.upper.max())
    executor = Serial()
    spread = testing.reach(*arguments, budget=testing.Budget(executor=executor))
    assert spread
    assert executor.calls == 2 * len(spread.pieces) - 1
    for other in (resumed, spread):
        assert np.array_equal(other.box(t_end), whole.box(t_end))
    for wrong in ((ARM, law(21.0), *arguments[2:]), (*arguments[:2], (x0 - 0.2, x0 + 0.15), t_end)):
        with pytest.raises(ArgumentError, match="resume: expected a tube of this loop"):
            testing.reach(*wrong, budget=testing.Budget(resume=stopped))


def test_boxes_of_another_barrier_prove_nothing(tmp_path):
    right = testing.certify_barrier(*slider())
    budget = testing.Budget(resume=right.save(tmp_path / "right.npz"))
    assert testing.certify_barrier(*slider(2.8), budget=budget).status == "refuted"
    h, law, plant, (lower, upper) = slider()
    with pytest.raises(ArgumentError, match=r"resume: .* do not cover"):
        testing.certify_barrier(h, law, plant, (lower, upper + 0.1), budget=budget)


def test_a_saved_barrier_is_checked_by_other_code_and_a_changed_file_is_not(tmp_path):
    path = testing.certify_barrier(*slider()).save(tmp_path / "barrier.npz")
    assert testing.recheck(path)
    arrays = dict(np.load(path))
    np.savez(path, **{**arrays, "lo": arrays["lo"][1:], "hi": arrays["hi"][1:]})
    assert "covers" in testing.recheck(path).reason
    force = 3.2 * float(SLIDER.mass_matrix(np.zeros(1))[0, 0])
    assert np.isclose(arrays["numbers"], force).sum() == 1
    for factor in (0.95, 0.9):  # 3.04 and 2.88 m/s^2
        np.savez(
            path,
            **{**arrays, "numbers": np.where(np.isclose(arrays["numbers"], force), factor * force, arrays["numbers"])},
        )
        assert bool(testing.recheck(path)) == (factor == 0.95)
