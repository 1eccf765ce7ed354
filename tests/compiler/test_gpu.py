"""Terms on a simulated GPU: arrays, streams, launches, errors. `test_on_gpu` uses a real one."""

import sys
import types

import numpy as np
import pytest
from fake_cuda import FakeCuda, install
from traced_cases import dynamic_states as states

from geomctrl import models
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError, NameNotFoundError
from geomctrl.tracing.backends import gpu, host


@pytest.fixture
def cuda(monkeypatch):
    return install(monkeypatch, FakeCuda())


class Array:
    """An array of a library that supports `__cuda_array_interface__` only."""

    def __init__(self, a, number=0):
        self.a, self.number = np.asarray(a), number

    @property
    def __cuda_array_interface__(self):
        a = self.a
        strides = None if a.flags.c_contiguous else a.strides
        return {
            "version": 3,
            "shape": a.shape,
            "typestr": a.dtype.str,
            "data": (a.ctypes.data, False),
            "strides": strides,
        }


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("robot", [models.panda(), models.quadruped()], ids=lambda r: r.name)
def test_what_the_cpu_computes(cuda, robot, precision):
    kind, tolerance = (np.float64, 1e-12) if precision == "double" else (np.float32, 1e-5)
    q, v, a = states(robot, 300, kind=kind)
    tau = robot.to_cuda("inverse_dynamics", precision=precision)(Array(q), Array(v), Array(a))
    assert tau.shape == (300, robot.nv)
    expected = robot.inverse_dynamics(q, v, a)
    assert np.abs(gpu.get(tau) - expected).max() <= tolerance * np.abs(expected).max()


def test_several_outputs_and_any_leading_axes(cuda):
    robot = models.panda()
    q, v, _ = states(robot, 6)
    M, Mdot, C, g = robot.to_cuda("terms")(Array(q.reshape(2, 3, 7)), Array(v.reshape(2, 3, 7)))
    expected = robot.terms(q, v)
    assert M.shape == Mdot.shape == C.shape == (2, 3, 7, 7)
    for found, name in ((M, "M"), (Mdot, "Mdot"), (C, "C"), (g, "g")):
        np.testing.assert_allclose(gpu.get(found).reshape(6, -1), getattr(expected, name).reshape(6, -1), atol=1e-12)
    one = robot.to_cuda("gravity_force")(Array(q[0]))
    assert one.shape == (7,)


def test_no_states(cuda):
    robot = models.two_link()
    out = robot.to_cuda("gravity_force")(Array(np.zeros((0, 2))))
    assert out.shape == (0, 2)
    assert gpu.get(out).shape == (0, 2)
    assert not any(line[0] == "launch" for line in cuda.log)


def test_to_the_gpu_and_back(cuda):
    for a in (np.arange(6.0).reshape(2, 3), np.ones(4, np.float32), np.zeros((0, 3))):
        np.testing.assert_array_equal(gpu.get(gpu.put(a)), a)
    q, v, a = (gpu.put(x) for x in states(models.panda(), 4))
    tau = models.panda().to_cuda()(q, v, a)
    np.testing.assert_allclose(gpu.get(tau), models.panda().inverse_dynamics(*states(models.panda(), 4)), atol=1e-12)


# --- streams ---


def used(cuda):
    """Record the streams in which arrays were passed, memory was allocated and the kernel was launched."""
    return {line[1] for line in cuda.log if line[0] in ("view", "allocate", "launch")}


@pytest.mark.parametrize(
    ("stream", "number"),
    [
        (None, 1),
        (0, 1),
        (1, 1),
        (2, 2),
        (4711, 4711),
        (types.SimpleNamespace(ptr=99), 99),
        (types.SimpleNamespace(cuda_stream=98), 98),
        (types.SimpleNamespace(__cuda_stream__=lambda: (0, 97), ptr=1), 97),
    ],
)
def test_the_stream_that_is_asked_for(cuda, stream, number):
    f = models.two_link().to_cuda("gravity_force")
    out = f(Array(np.zeros((3, 2))), stream=stream)
    assert used(cuda) == {number}
    assert ("sync", number) in cuda.log
    assert out.__cuda_array_interface__["stream"] == number


def test_no_waiting_where_nothing_is_checked(cuda):
    f = models.two_link().to_cuda("gravity_force")
    out = f(Array(np.full((3, 2), np.nan)), check=False)
    assert not any(line[0] == "sync" for line in cuda.log)
    assert np.isnan(gpu.get(out)).all()


def test_who_takes_a_result_waits_for_it(cuda):
    out = models.two_link().to_cuda("gravity_force")(Array(np.zeros((3, 2))), stream=4711, check=False)

    def waits(stream):
        before = len(cuda.log)
        out.__dlpack__(stream=stream)
        return [line for line in cuda.log[before:] if line[0] == "wait"]

    assert waits(12) == [("wait", 12, 4711)]
    assert waits(None) == waits(1) == [("wait", 1, 4711)]
    assert waits(4711) == waits(-1) == []


def test_a_call_leaves_its_report_to_the_next(cuda):
    f = models.two_link().to_cuda("gravity_force")
    for _ in range(3):
        f(Array(np.zeros((3, 2))))
    assert cuda.log.count(("pinned", 8)) == 1


def test_a_stream_that_is_none(cuda):
    with pytest.raises(ArgumentError, match="stream: expected one of cuda-core, torch or cupy, or its number"):
        models.two_link().to_cuda("gravity_force")(Array(np.zeros((3, 2))), stream="default")


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_the_current_stream_of_the_arrays_library(cuda, monkeypatch, name):
    library = types.ModuleType(name)
    tensor = type("Tensor", (Array,), {"__module__": f"{name}.inner", "device": "cuda:0"})
    asked = []
    library.cuda = types.SimpleNamespace(
        current_stream=lambda device: asked.append(device) or types.SimpleNamespace(cuda_stream=31),
        get_current_stream=lambda: types.SimpleNamespace(ptr=31),
    )
    library.from_dlpack = lambda x: ("theirs", name, x.shape)
    monkeypatch.setitem(sys.modules, name, library)
    out = models.two_link().to_cuda("gravity_force")(tensor(np.zeros((3, 2))))
    assert used(cuda) == {31}
    assert out == ("theirs", name, (3, 2))
    assert asked == (["cuda:0"] if name == "torch" else [])


def test_results_of_the_arrays_own_kind(cuda, monkeypatch):
    namespace = types.SimpleNamespace(from_dlpack=lambda x: ("by its namespace", x.__dlpack_device__()))
    standard = type("Standard", (Array,), {"__module__": "some.library", "__array_namespace__": lambda self: namespace})
    f = models.two_link().to_cuda("gravity_force")
    assert f(standard(np.zeros((3, 2)))) == ("by its namespace", (2, 0))
    jax = types.ModuleType("jax.dlpack")
    jax.from_dlpack = lambda x: "jax"
    monkeypatch.setitem(sys.modules, "jax.dlpack", jax)
    assert f(type("ArrayImpl", (Array,), {"__module__": "jaxlib._jax"})(np.zeros((3, 2)))) == "jax"


# --- launches ---


def test_enough_blocks_for_all_states(cuda):
    f = models.two_link().to_cuda("gravity_force")
    for n, blocks in ((1, 1), (128, 1), (129, 2), (1000, 8)):
        f(Array(np.zeros((n, 2))))
        assert next(line for line in reversed(cuda.log) if line[0] == "launch") == ("launch", 1, blocks, 128)


@pytest.mark.parametrize(
    ("registers", "memory", "taken", "threads", "made"),
    [
        ({0: 100}, {}, 0, 64, 1),  # nine blocks of 64 fit, but only four of 128
        ({0: 166, 4: 128}, {4: 24}, 4, 128, 2),  # few numbers are moved: more threads
        ({0: 166, 4: 128}, {4: 200}, 0, 128, 2),  # three blocks fit without recompiling
        ({0: 200, 4: 128, 3: 168}, {4: 400, 3: 16}, 3, 128, 3),
        ({0: 200, 4: 128, 3: 168}, {4: 400, 3: 300}, 0, 64, 3),
        ({0: 254}, {0: 680}, 0, 128, 1),  # the kernel already lacks registers
    ],
)
def test_registers_choose_how_many_threads_are_at_work(monkeypatch, registers, memory, taken, threads, made):
    cuda = install(monkeypatch, FakeCuda(registers=registers, memory=memory))
    f = models.two_link().to_cuda("gravity_force")
    assert (f.registers, f.local_bytes) == (registers[taken], memory.get(taken, 0))
    assert f.threads == threads
    assert len(cuda.texts) == made
    assert f"{registers[taken]} registers" in repr(f)


def test_each_device_its_own(monkeypatch):
    cuda = install(monkeypatch, FakeCuda(devices=2))
    f = models.two_link().to_cuda("gravity_force", device=1)
    cuda.current = 0
    out = f(Array(np.zeros((3, 2)), number=1))
    assert cuda.current == 0  # unchanged
    assert out.__dlpack_device__() == (2, 1)
    with pytest.raises(
        ArgumentError, match=r"q: expected float64 of shape \(..., 2\) in C order on GPU 1, .* on device 0"
    ):
        f(Array(np.zeros((3, 2)), number=0))


def test_code_for_the_device(monkeypatch):
    cuda = FakeCuda()
    cuda.devices[0].compute_capability = (12, 0)
    asked = []
    install(monkeypatch, cuda)
    monkeypatch.setattr(host, "ptx", lambda text, processor, library: asked.append(processor) or cuda.ptx(text, ""))
    models.two_link().to_cuda("gravity_force")
    assert asked == ["sm_90"]


# --- errors ---


def test_the_first_state_without_a_result_is_named(cuda):
    robot = models.panda()
    q, v, a = states(robot, 200)
    f = robot.to_cuda()
    v[150, 0] = v[131, 3] = np.nan
    with pytest.raises(ArgumentError, match=r"^state 131: v: expected finite numbers, got nan at index \[3\]$"):
        f(Array(q), Array(v), Array(a))
    q[7, 0] = np.inf
    with pytest.raises(ArgumentError, match=r"^state 7: q: expected finite numbers, got inf at index \[0\]$"):
        f(Array(q), Array(v), Array(a))
    f(*(Array(x) for x in states(robot, 200, 1)))  # the report of the last call is ignored


def test_what_the_cpu_refuses_is_refused_in_its_words(cuda):
    dog = models.quadruped()
    q, v, a = states(dog, 4)
    q[2, 0] += 0.1
    with pytest.raises(ArgumentError, match=r"^state 2: q: ") as raised:
        dog.to_cuda()(Array(q), Array(v), Array(a))
    with pytest.raises(ArgumentError) as expected:
        dog.inverse_dynamics(q[2], v[2], a[2])
    assert str(raised.value) == f"state 2: {expected.value}"
    arm = models.two_link()
    negative = arm.with_parameters(arm.parameters * [[1.0], [-1.0]], physical=False)
    with pytest.raises(ModelError, match=r"^state 0: .*not positive definite"):
        negative.to_cuda("forward_dynamics")(*(Array(np.ones((5, 2))) for _ in range(3)))


def test_what_only_the_gpu_refuses(cuda, monkeypatch):
    robot = models.two_link()
    f = robot.to_cuda("gravity_force", precision="float")
    monkeypatch.setattr("geomctrl.terms.gpu.over_states", lambda *a, **k: None)
    with pytest.raises(ArgumentError, match="state 1: gravity_force has no result in float precision"):
        f(Array(np.array([[0.0, 0.0], [np.nan, 0.0]], np.float32)))


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.zeros((3, 2)), "got ndarray on the host"),
        (Array(np.zeros((3, 3))), r"got float64 of shape \(3, 3\)"),
        (Array(np.zeros(())), r"got float64 of shape \(\)"),
        (Array(np.zeros((3, 2), np.float32)), r"got float32 of shape \(3, 2\)"),
        (Array(np.zeros((3, 2), np.int64)), r"got int64 of shape \(3, 2\)"),
        (Array(np.zeros((2, 3)).T), r"got strides of \(1, 3\) numbers for shape \(3, 2\)"),
        (Array(np.zeros((6, 2))[::2]), r"got strides of \(4, 1\) numbers"),
        ([0.0, 1.0], r"got list \(no protocol\)"),
    ],
)
def test_arrays_that_a_kernel_can_not_take(cuda, q, message):
    with pytest.raises(
        ArgumentError, match=r"q: expected float64 of shape \(\.\.\., 2\) in C order on GPU 0, " + message
    ):
        models.two_link().to_cuda("gravity_force")(q)


def test_strides_of_axes_that_have_one_number_say_nothing(cuda):
    a = np.zeros((4, 2))[:1]
    assert gpu._in_order((1, 2), (77, 1))
    assert models.two_link().to_cuda("gravity_force")(Array(a)).shape == (1, 2)


def test_arguments_must_fit_together(cuda):
    f = models.two_link().to_cuda("mass_matrix")
    with pytest.raises(ArgumentError, match="mass_matrix: expected 1 arrays, q, got 2"):
        f(Array(np.zeros(2)), Array(np.zeros(2)))
    f = models.two_link().to_cuda()
    with pytest.raises(ArgumentError, match=r"a: expected the leading axes of q, \(3,\), got \(4,\)"):
        f(Array(np.zeros((3, 2))), Array(np.zeros((3, 2))), Array(np.zeros((4, 2))))


def test_bad_names(cuda):
    robot = models.two_link()
    with pytest.raises(NameNotFoundError, match=r"term: expected one of inverse_dynamics, .* got 'inverse'"):
        robot.to_cuda("inverse")
    with pytest.raises(ArgumentError, match="precision: expected 'double' or 'float', got 'half'"):
        robot.to_cuda(precision="half")
    with pytest.raises(GeomctrlError, match="device: expected the number of one of 1 NVIDIA GPUs, got 3"):
        robot.to_cuda(device=3)


def test_an_old_cuda_core_is_refused_with_the_version_that_works(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    old = types.ModuleType("cuda.core")
    old.__version__ = "0.3.2"
    monkeypatch.setitem(sys.modules, "cuda.core", old)
    with pytest.raises(
        GeomctrlError, match=r"a GPU needs cuda.core 1.2 or newer, got 0.3.2: pip install 'geomctrl\[cuda\]'"
    ):
        gpu.core()
    old.__version__ = "1.2.0"
    assert gpu.core() is old


def test_a_missing_package_is_named(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(gpu.importlib, "import_module", missing)
    with pytest.raises(GeomctrlError, match=r"pip install 'geomctrl\[cuda\]' \(No module named 'cuda.core'\)"):
        models.two_link().to_cuda()
    assert "geomctrl[cuda]" in gpu.why_not()
    with pytest.raises(GeomctrlError, match=r"needs NVIDIA's libdevice: pip install .* nvidia-cuda-nvcc-cu12"):
        gpu.libdevice()


def test_a_missing_driver_is_named(monkeypatch):
    def broken():
        raise RuntimeError("libcuda.so: not found\nmore")

    monkeypatch.setattr(
        gpu, "core", lambda: types.SimpleNamespace(Device=types.SimpleNamespace(get_all_devices=broken))
    )
    with pytest.raises(GeomctrlError, match=r"no NVIDIA driver can be used: libcuda\.so: not found$"):
        models.two_link().to_cuda()


def test_no_gpu_at_all(monkeypatch):
    install(monkeypatch, FakeCuda(devices=0))
    assert gpu.why_not() == "device: expected the number of one of 0 NVIDIA GPUs, got 0"
