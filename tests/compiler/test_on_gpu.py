"""Terms and loops on a GPU: agreement with the CPU, errors, streams, arrays of other libraries.

Without a GPU a stand-in runs them, so that the tests themselves are known to work.
"""

import numpy as np
import pytest
from fake_cuda import FakeCuda
from loops_on_fake_gpu import install
from traced_cases import dynamic_states as states

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError
from geomctrl.tracing.backends import gpu, ptx

NO_GPU = gpu.why_not()
pytestmark = [pytest.mark.slow] if NO_GPU else []
needs_gpu = pytest.mark.skipif(NO_GPU is not None, reason=NO_GPU or "")


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    if NO_GPU:
        install(monkeypatch, FakeCuda())


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("term", ["inverse_dynamics", "forward_dynamics", "terms", "gravity_force", "regressor"])
@pytest.mark.parametrize("robot", [models.panda(), models.quadruped(), models.three_spheres()], ids=lambda r: r.name)
def test_a_gpu_computes_what_the_cpu_does(robot, term, precision):
    kind, tolerance = (np.float64, 1e-11) if precision == "double" else (np.float32, 1e-3)
    f = robot.to_cuda(term, precision=precision)
    arguments = (*states(robot, 1000, kind=kind), states(robot, 1000, 1, kind=kind)[1])[: len(f.inputs)]  # last: v_ref
    result = f(*(gpu.put(x) for x in arguments))
    expected = getattr(robot, term)(*(x.astype(float) for x in arguments))
    result = result if isinstance(result, tuple) else (result,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for y, z in zip(result, expected, strict=True):
        assert np.abs(gpu.get(y) - z).max() <= tolerance * (1.0 + np.abs(z).max())


def test_a_gpu_reduces_any_angle():
    robot = models.panda()
    q = np.random.default_rng(0).normal(size=(64, 7)) * np.geomspace(1.0, 1e300, 64)[:, None]
    result = gpu.get(robot.to_cuda("mass_matrix")(gpu.put(q)))
    np.testing.assert_allclose(result, robot.mass_matrix(q), rtol=1e-11, atol=1e-13)


def test_a_gpu_reports_the_first_state_without_a_result():
    robot = models.panda()
    q, v, a = states(robot, 100_000)
    v[77_777, 2] = v[99_999, 0] = np.nan
    arrays = [gpu.put(x) for x in (q, v, a)]
    f = robot.to_cuda()
    with pytest.raises(ArgumentError, match=r"^state 77777: v: expected finite numbers, got nan at index \[2\]$"):
        f(*arrays)
    tau = gpu.get(f(*arrays, check=False))
    assert np.isnan(tau).any(axis=1).nonzero()[0].tolist() == [77_777, 99_999]


def test_a_gpu_works_in_a_stream():
    robot = models.panda()
    arguments = states(robot, 10_000)
    stream = gpu.device().create_stream()
    arrays = [gpu.put(x) for x in arguments]
    out = [robot.to_cuda()(*arrays, stream=stream, check=False) for _ in range(3)]
    stream.sync()
    for tau in out:
        np.testing.assert_allclose(gpu.get(tau), robot.inverse_dynamics(*arguments), atol=1e-10)


@needs_gpu
@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_a_gpu_takes_and_gives_arrays_of(name):
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    robot = models.panda()
    arguments = states(robot, 50)
    move = (lambda x: library.as_tensor(x, device="cuda")) if name == "torch" else library.asarray
    tau = robot.to_cuda()(*map(move, arguments))
    assert type(tau) is type(move(arguments[0]))
    back = tau.cpu().numpy() if name == "torch" else library.asnumpy(tau)
    np.testing.assert_allclose(back, robot.inverse_dynamics(*arguments), atol=1e-11)


@pytest.mark.parametrize("method", ["MK4", "MK54"])
def test_a_gpu_runs_closed_loops_as_the_cpu_does(method):
    robot, rng = models.panda(), np.random.default_rng(0)
    reference = Sinusoids(robot, robot.neutral(), 0.3, 0.4, 0.5)
    laws = [controllers.SlotineLi(robot, reference, Lambda=4.0 + 0.01 * k) for k in range(200)]
    cases = robot, laws, np.array([robot.neutral()] * 200), 0.1 * rng.normal(size=(200, 7)), 0.5, 1e-3
    there, here = (
        gc.simulate_many(*cases, options=gc.SimulationOptions(method, device=device, compiled=True))
        for device in ("cuda", "cpu")
    )
    for a, b in zip(there, here, strict=True):
        assert a.reason == b.reason
        np.testing.assert_allclose(a.q, b.q, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(a.tau, b.tau, rtol=0.0, atol=1e-6)
        assert {name: m.verdict for name, m in a.monitors.items()} == {
            name: m.verdict for name, m in b.monitors.items()
        }


@needs_gpu
def test_a_gpu_has_the_registers_that_the_assembler_counts():
    f = models.panda().to_cuda()
    assert f.registers <= 168
    assert f.local_bytes <= gpu.MAX_LOCAL_BYTES
    assert f.threads <= ptx.THREADS
