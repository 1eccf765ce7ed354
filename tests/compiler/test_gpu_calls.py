"""Kernels that other libraries call on their own buffers: results against the CPU's code, and the handler for XLA on
structs that are built here as xla/ffi/api/c_api.h describes them.
"""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from fake_cuda import FakeCuda, install

from geomctrl import models, testing
from geomctrl.compiler.differentiable import PARAMETERS, Differentiable
from geomctrl.errors import GeomctrlError
from geomctrl.terms.requested_terms import ON_GROUP, compiled_term, differentiable_term
from geomctrl.tracing.backends import gpu, gpu_calls

CREATE_ERROR, GET_STREAM, FUNCTIONS = 1, 5, 8  # places among the functions of the interface


@pytest.fixture
def cuda(monkeypatch):
    monkeypatch.setattr(gpu_calls, "_launcher", lambda: ctypes.cast(LAUNCH, ctypes.c_void_p).value)
    return install(monkeypatch, FakeCuda())


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)
def LAUNCH(kernel, *rest):
    """The driver's cuLaunchKernel for kernels that are Python objects here."""
    grid, *others, stream, places, extra = rest
    assert (others[:2], others[3:5], others[5], extra) == ([1, 1], [1, 1], 0, None)
    Launches.seen.append((grid, others[2], stream))
    if Launches.code:
        return Launches.code
    wanted = ctypes.cast(kernel, ctypes.py_object).value
    count = len(wanted.kinds)
    values = [ctypes.c_int64.from_address(x).value for x in (ctypes.c_void_p * count).from_address(places)]
    wanted.launch(grid * others[2], values)
    return 0


Launches = SimpleNamespace(seen=[], code=0)  # what was launched, and the driver's answer


@pytest.fixture(autouse=True)
def no_launches():
    Launches.seen, Launches.code = [], 0


def function_of(name="inverse_dynamics", robot=None):
    robot = robot or testing.random_robot(np.random.default_rng(3), ["free", "revolute", "spherical"], [-1, 0, 1])
    term = compiled_term(robot, name, None, "body", others=ON_GROUP)
    function, constants, parameters, _ = differentiable_term(robot, term)
    model = function.constants, function.parameters  # a new function, because its kernels stay with it
    others = function.inputs, function.outputs, function._make, function._configurations, function.trial
    return robot, Differentiable(function.key, model, *others), constants, parameters


def operands_of(robot, function, constants, parameters, states, own):
    rng = np.random.default_rng(1)
    q = np.array([robot.random_configuration(rng) for _ in range(states)]).reshape(states, robot.nq)
    rows = [q, *(rng.normal(size=(states, n)) for n in function.inputs[2:])]
    pi = parameters * rng.uniform(0.9, 1.1, (states, 1)) if own else parameters
    return [constants, np.ascontiguousarray(pi), *rows]


def on_cpu(function, operands, own):
    _, call = function.call(not own, True)
    constants, parameters, *rows = operands
    out = [np.empty((len(rows[0]), n)) for n in function.outputs]
    call(
        constants.ctypes.data, [x.ctypes.data for x in (*rows, parameters)], [y.ctypes.data for y in out], len(rows[0])
    )
    return out


def launched(call, cuda, operands, outputs):
    states = len(operands[2])
    out = [np.full((states + 1, n), 77.0) for n in outputs]
    call(cuda.LEGACY_DEFAULT_STREAM, states, [x.ctypes.data for x in (*operands, *out)])
    assert all((y[states] == 77.0).all() for y in out), "a thread without a state wrote"
    return [y[:states] for y in out]


@pytest.mark.parametrize("own", [False, True], ids=["shared parameters", "own parameters"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "mass_matrix", "forward_dynamics"])
def test_the_kernel_is_what_the_cpu_computes(cuda, name, own):
    robot, function, constants, parameters = function_of(name)
    operands = operands_of(robot, function, constants, parameters, 200, own)
    _, call = function.gpu_call(not own)
    for y, expected in zip(launched(call, cuda, operands, function.outputs), on_cpu(function, operands, own)):
        np.testing.assert_allclose(y, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def test_states_without_a_result_are_nan(cuda):
    robot, function, constants, parameters = function_of()
    operands = operands_of(robot, function, constants, parameters, 5, own=True)
    operands[3][1, 0], operands[1][3, 0] = np.nan, np.nan
    (tau,) = launched(function.gpu_call(False)[1], cuda, operands, function.outputs)
    np.testing.assert_array_equal(np.isnan(tau), np.isnan(on_cpu(function, operands, own=True)[0]))
    assert np.isnan(tau).all(axis=1).tolist() == [False, True, False, False, False]
    assert np.isnan(tau[3]).any(), "of a nan among its parameters"


def test_derivatives_have_kernels(cuda):
    robot, function, constants, parameters = function_of()
    operands = operands_of(robot, function, constants, parameters, 3, own=False)
    rates = function.pushforward((PARAMETERS + 2,))
    operands.append(np.random.default_rng(2).normal(size=(3, rates.inputs[-1])))
    (y,) = launched(rates.gpu_call(True)[1], cuda, operands, rates.outputs)
    expected = on_cpu(rates, operands, own=False)[0]
    np.testing.assert_allclose(y, expected, rtol=1e-11, atol=1e-11)
    assert np.abs(expected).max() > 0.1


def test_code_that_differs_from_its_trace_is_refused(cuda, monkeypatch):
    _, function, *_ = function_of()
    right = gpu_calls.ptx.module

    def wrong(*arguments):
        head, kernel = right(*arguments).split("define ptx_kernel", 1)
        return f"{head}define ptx_kernel{kernel.replace('= fsub ', '= fadd ', 1)}"

    monkeypatch.setattr(gpu_calls.ptx, "module", wrong)
    with pytest.raises(GeomctrlError, match="differs from its trace"):
        function.gpu_call(True)


# --- XLA ---------------------------------------------------------------------------------------------------------


class Frame:
    """A call of a handler: XLA_FFI_CallFrame with buffers, the interface's functions and an execution context."""

    def __init__(self, operands, results, refusal=None):
        self.kept, self.errors, self.asked = [], [], []
        functions = [0] * FUNCTIONS
        create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._create)
        stream = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._stream)
        self.kept += [create, stream]
        self.refusal = refusal
        functions[CREATE_ERROR] = ctypes.cast(create, ctypes.c_void_p).value
        functions[GET_STREAM] = ctypes.cast(stream, ctypes.c_void_p).value
        api = self._words(160, 0, 24, 0, 3 << 32, 0, *functions[1:])
        arguments, out = self._buffers(operands), self._buffers(results)
        self.address = self._words(
            144, 0, api, 0xC0FFEE, 4,
            40, 0, len(operands), 0, arguments,
            40, 0, len(results), 0, out,
            0, 0, 0,
        )  # fmt: skip

    def _words(self, *words):
        block = (ctypes.c_int64 * len(words))(*words)
        self.kept.append(block)
        return ctypes.addressof(block)

    def _buffers(self, arrays):
        return self._words(*(self._words(48, 0, 12, a.ctypes.data, a.ndim, self._words(*a.shape)) for a in arrays))

    def _create(self, question):
        size, extension, message, code = (ctypes.c_int64 * 4).from_address(question)
        assert (size, extension) == (32, 0)
        self.errors.append((ctypes.string_at(message).decode(), code & 0xFFFFFFFF))
        return 0xBAD

    def _stream(self, question):
        question_fields = (ctypes.c_int64 * 4).from_address(question)
        assert list(question_fields[:3]) == [32, 0, 0xC0FFEE]
        question_fields[3] = 0x57
        return self.refusal


@pytest.fixture
def xla(cuda):
    """An arm, its constants and parameters, the kernel of its inverse dynamics, and the handler as a function."""
    robot, function, *numbers = function_of(robot=models.two_link())
    _, call = function.gpu_call(True)
    handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(call.xla_handler)
    return SimpleNamespace(robot=robot, numbers=numbers, call=call, handler=lambda frame: handler(frame.address))


def test_the_handler_launches_in_xlas_stream(xla):
    rng, lead = np.random.default_rng(5), (3, 70)
    q, v, a = rng.normal(size=(3, *lead, 2))
    out = np.full((*lead, 2), 77.0)
    frame = Frame([*xla.numbers, q, v, a], [out])
    assert xla.handler(frame) is None
    np.testing.assert_allclose(out, xla.robot.inverse_dynamics(q, v, a), rtol=1e-11, atol=1e-11)
    threads = xla.call.kernel.threads
    assert Launches.seen == [(-(-210 // threads), threads, 0x57)]


def test_no_states_are_no_launch(xla):
    empty = np.zeros((0, 2))
    assert xla.handler(Frame([*xla.numbers, empty, empty, empty], [empty])) is None
    assert Launches.seen == []


def test_xlas_refusal_of_a_stream_is_returned(xla):
    x = np.zeros((1, 2))
    frame = Frame([*xla.numbers, x, x, x], [x.copy()], refusal=0xAB)
    assert xla.handler(frame) == 0xAB
    assert Launches.seen == []


def test_a_failed_launch_is_an_error_with_text(xla):
    x = np.zeros((1, 2))
    Launches.code = 701
    frame = Frame([*xla.numbers, x, x, x], [x.copy()])
    assert xla.handler(frame) == 0xBAD
    assert frame.errors == [(gpu_calls.MESSAGE, 13)]


def test_without_a_gpu_the_reason_is_given(monkeypatch):
    monkeypatch.setattr(gpu, "core", lambda: (_ for _ in ()).throw(GeomctrlError(gpu.NEEDED)))
    _, function, *_ = function_of()
    with pytest.raises(GeomctrlError, match="needs the packages of the extra 'cuda'"):
        function.gpu_call(True)
