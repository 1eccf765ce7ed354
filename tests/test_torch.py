"""Terms as PyTorch functions: values, derivatives, torch's transformations, torch.compile, bad input."""

import copy
import pickle
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from fake_cuda import FakeCuda, install
from oracles import assert_close
from urdf_text import gripper

from geomctrl import derivatives, models, testing
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.errors import ArgumentError, GeomctrlError, NameNotFoundError
from geomctrl.tracing.backends import buffer_calls, cache, gpu_calls

torch = pytest.importorskip("torch", reason="needs torch: pip install 'geomctrl[torch]'")

from geomctrl.interop import torch_functions  # noqa: E402

pytestmark = [  # PyTorch's own use of what it deprecates, in forward derivatives and in opcheck
    pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),
]
REAL = torch.float64
CONFIGURATIONS = {"q", "q0", "q1"}


@pytest.fixture(scope="module")
def arm():
    return models.two_link()


def floating():
    return testing.random_robot(np.random.default_rng(3), ["free", "revolute", "spherical"], [-1, 0, 1])


ROBOTS = {"two_link": models.two_link, "floating": floating}
ROBOTS["coupled"] = lambda: models.load_urdf(gripper(), floating_base=True)


def states(robot, f, *lead, seed=0):
    """Arrays for the inputs of a function."""
    rng = np.random.default_rng(seed)
    number = int(np.prod(lead))

    def configurations():
        return np.array([robot.random_configuration(rng) for _ in range(number)]).reshape(*lead, robot.nq)

    return [configurations() if n in CONFIGURATIONS else rng.normal(size=(*lead, *s)) for n, s in f.inputs.items()]


def tensors(arrays, **options):
    return [torch.tensor(x, dtype=REAL, **options) for x in arrays]


def flat(x):
    return list(x) if isinstance(x, tuple) else [x]


# --- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROBOTS)
def test_terms_are_those_of_the_library(name):
    robot = ROBOTS[name]()
    terms = [x for x in CATALOGUE if hasattr(type(robot), x)]
    assert len(terms) > 8
    for term in terms:
        f = robot.to_torch(term)
        arrays = states(robot, f, 3, 4)
        expected = getattr(robot, term)(*arrays)
        result = f(*tensors(arrays))
        assert type(result) is (type(expected) if isinstance(expected, tuple) else torch.Tensor)
        for y, z, one in zip(flat(result), flat(expected), flat(f(*(x[1, 2] for x in tensors(arrays)))), strict=True):
            assert_close(y.numpy(), z, 1e-11, 1.0)
            assert_close(one.numpy(), z[1, 2], 1e-11, 1.0)


def test_frames_and_steps_on_the_group():
    robot = floating()
    q, dv = states(robot, integrate := robot.to_torch("integrate"), 5)
    moved = integrate(*tensors([q, dv]))
    assert_close(moved.numpy(), robot.integrate(q, dv), 1e-12)
    assert_close(robot.to_torch("difference")(torch.tensor(q), moved).numpy(), dv, 1e-9)
    frame = robot.body_names[-1]
    J = robot.to_torch("jacobian", frame=frame, representation="hybrid")(torch.tensor(q))
    assert_close(J.numpy(), robot.jacobian(q, frame, "hybrid"), 1e-12)


def test_empty_batches_strides_and_large_batches(arm):
    f = arm.to_torch()
    assert f(*torch.zeros(3, 0, 2, dtype=REAL)).shape == (0, 2)
    x = torch.tensor(np.random.default_rng(6).normal(size=(2, 20_001)))  # in several threads
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert_close(f(x.T, x.T, x.T).numpy(), arm.inverse_dynamics(*[x.T.numpy().copy()] * 3), 1e-12)
    finally:
        torch.set_num_threads(threads)
    negative = torch.view_as_complex(torch.stack([x.T, x.T], -1)).conj().imag[:9]  # a lazy minus sign
    assert_close(f(*[negative] * 3).numpy(), arm.inverse_dynamics(*[-x.T.numpy()[:9]] * 3), 1e-12)


# --- derivatives -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("term", [x for x in CATALOGUE if x != "forward_dynamics_derivatives"])
def test_gradients_are_those_of_differences(arm, term):
    f = arm.to_torch(term)
    arrays = tensors(states(arm, f, 3), requires_grad=True)
    parameters = torch.tensor(arm.parameters, requires_grad=True)
    assert torch.autograd.gradcheck(f, (*arrays, parameters), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, tuple(x[:1].detach().requires_grad_() for x in arrays))


def test_second_derivatives_by_parameters(arm):
    f = arm.to_torch("forward_dynamics")
    arrays = tensors(states(arm, f, 2))
    parameters = torch.tensor(arm.parameters, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: f(*arrays, x), (parameters,))


@pytest.mark.parametrize("name", ["floating", "coupled"])
def test_gradients_of_robots_with_poses_are_along_the_group(name):
    robot = ROBOTS[name]()
    f, integrate = robot.to_torch(), robot.to_torch("integrate")
    q, v, a = tensors(states(robot, f))
    step = torch.zeros(robot.nv, dtype=REAL, requires_grad=True)
    assert torch.autograd.gradcheck(lambda d: f(integrate(q, d), v, a), (step,), check_forward_ad=True)
    jacobian = torch.func.jacrev(lambda d: f(integrate(q, d), v, a))(step.detach())
    assert_close(jacobian.numpy(), robot.inverse_dynamics_derivatives(*(x.numpy() for x in (q, v, a))).dq, 1e-10)
    for mode in (torch.func.jacrev, torch.func.jacfwd):
        J = mode(f)(q, v, a).numpy()
        for place in (s for s in robot.q_slices if s.stop - s.start == 12):
            R = q.numpy()[place].reshape(3, 4)[:, :3]
            dR = J[:, place].reshape(-1, 3, 4)[:, :, :3]
            assert np.abs(dR).max() > 1e-3 or not J[:, place].any()
            if mode is torch.func.jacrev:
                assert np.abs(R.T @ dR + np.swapaxes(R.T @ dR, 1, 2)).max() < 1e-9


def test_derivatives_by_inertial_parameters_are_the_regressor(arm):
    f = arm.to_torch()
    q, v, a = states(arm, f, 4)
    Y = arm.regressor(q, v, a)
    weights = np.random.default_rng(0).normal(size=(4, 2))
    parameters = torch.tensor(arm.parameters, requires_grad=True)
    (f(*tensors([q, v, a]), parameters=parameters) * torch.tensor(weights)).sum().backward()
    assert_close(parameters.grad.numpy().ravel(), np.einsum("si,sij->j", weights, Y), 1e-12)
    own = torch.tensor(np.tile(arm.parameters, (4, 1, 1)), requires_grad=True)
    (f(*tensors([q, v, a]), own) * torch.tensor(weights)).sum().backward()
    assert_close(own.grad.numpy().reshape(4, -1), np.einsum("si,sij->sj", weights, Y), 1e-12)
    one = tensors([x[0] for x in (q, v, a)])
    for mode in (torch.func.jacrev, torch.func.jacfwd):
        assert_close(mode(f, 3)(*one, torch.tensor(arm.parameters)).numpy().reshape(2, -1), Y[0], 1e-12)


def test_unused_outputs_and_one_output_of_several(arm):
    f = arm.to_torch("terms")
    q, v = tensors(states(arm, f, 3), requires_grad=True)
    f(q, v).g.sum().backward()
    expected = torch.tensor(q.detach().numpy(), requires_grad=True)
    arm.to_torch("gravity_force")(expected).sum().backward()
    assert_close(q.grad.numpy(), expected.grad.numpy(), 1e-12)


# --- torch's transformations -------------------------------------------------------------------------------------


def test_vmap_in_every_axis(arm):
    f = arm.to_torch()
    q, v, a = (torch.tensor(x) for x in np.random.default_rng(5).normal(size=(3, 4, 3, 2)))
    expected = f(q, v, a)
    assert_close(torch.vmap(f)(q, v, a), expected, 1e-13)
    assert_close(torch.vmap(torch.vmap(f))(q, v, a), expected, 1e-13)
    assert_close(torch.vmap(f, (0, -1, 0), out_dims=1)(q, v.movedim(0, -1), a), expected.movedim(0, 1), 1e-13)
    one = torch.vmap(f, (0, None, None))(q, v[0], a[0])
    assert_close(one, f(q, v[0].expand_as(q), a[0].expand_as(q)), 1e-13)
    factors = torch.linspace(1.0, 2.0, 4, dtype=REAL)
    own = factors[:, None, None] * torch.tensor(arm.parameters)
    scaled = torch.stack([f(q[0], v[0], a[0], pi) for pi in own])
    assert_close(torch.vmap(f, (None, None, None, 0))(q[0], v[0], a[0], own), scaled, 1e-13)
    assert_close(torch.vmap(lambda pi: f(q[0, 0], v[0, 0], a[0, 0], pi))(own), scaled[:, 0], 1e-13)
    each = torch.vmap(torch.func.grad(lambda q, v, a: f(q, v, a)[0]))(q[0], v[0], a[0])
    dq = arm.inverse_dynamics_derivatives(*(x[0].numpy() for x in (q, v, a))).dq
    assert_close(each, dq[:, 0], 1e-12)


def test_hessians_are_the_closed_forms(arm):
    q, v, a = states(arm, arm.to_torch())
    for term, closed, last in (
        ("inverse_dynamics", derivatives.inverse_dynamics_second_derivatives, "dadq"),
        ("forward_dynamics", derivatives.forward_dynamics_second_derivatives, "dtaudq"),
    ):
        f, expected = arm.to_torch(term), closed(arm, q, v, a)
        for modes in ((torch.func.jacfwd, torch.func.jacrev), (torch.func.jacrev, torch.func.jacfwd)):
            H = modes[0](modes[1](f, (0, 1, 2)), (0, 1, 2))(*tensors([q, v, a]))
            pairs = [(H[0][0], expected.dqdq), (H[1][0], expected.dvdq), (H[1][1], expected.dvdv)]
            for y, z in [*pairs, (H[2][0], getattr(expected, last))]:
                assert_close(y.numpy(), z, 1e-10, 1.0)


@pytest.mark.parametrize("term", ["inverse_dynamics", "terms"])
def test_compiled_functions_have_no_breaks(arm, term):
    f = arm.to_torch(term)
    arrays = states(arm, f, 6)

    def loss(*x):
        return sum((y.sin() * 2.0).sum() for y in flat(f(*x)))

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    results = []
    for g in (loss, compiled):
        x = [*tensors(arrays, requires_grad=True), torch.tensor(arm.parameters, requires_grad=True)]
        value = g(*x)
        value.backward()
        results.append([value.detach(), *(y.grad for y in x)])
    for y, z in zip(*results, strict=True):
        assert_close(y, z, 1e-12)
    each = torch.compile(torch.vmap(loss), fullgraph=True, backend="aot_eager")(*tensors(arrays))
    assert_close(each.sum(), results[0][0], 1e-12)


def test_forward_derivatives_in_compiled_functions_are_refused(arm):
    f, x = arm.to_torch(), torch.ones(2, dtype=REAL)

    def rate(q):
        return torch.func.jvp(lambda q: f(q, x, x), (q,), (x,))[1]

    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"jvp and jacfwd do not work inside of torch\.compile"):
        torch.compile(rate, fullgraph=True, backend="aot_eager")(x)
    assert_close(torch.compile(rate, backend="aot_eager")(x), rate(x), 1e-12)  # not compiled
    assert rate(x).abs().max() > 1.0


def test_operator_follows_the_rules_of_torch(arm):
    f = arm.to_torch("terms")
    q, v = tensors(states(arm, f, 3), requires_grad=True)
    arguments = (f._name, *f._numbers[torch.device("cpu")], [q, v])
    torch.library.opcheck(torch_functions._operator, arguments)


def test_threads_pickle_and_copy(arm):
    f = pickle.loads(pickle.dumps(copy.deepcopy(arm.to_torch("forward_dynamics"))))
    assert repr(f) == "TorchFunction(two_link: forward_dynamics(q, v, tau, parameters=None))"
    arrays, results = np.random.default_rng(8).normal(size=(8, 3, 100, 2)), [None] * 8

    def work(k):
        for _ in range(20):
            x = tensors(arrays[k], requires_grad=True)
            results[k] = f(*x)
            results[k].sum().backward()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, y in enumerate(results):
        assert_close(y.detach().numpy(), arm.forward_dynamics(*arrays[k]), 1e-12)


# --- comparison with Python, and what can not be computed --------------------------------------------------------


def test_a_function_is_compared_with_python(monkeypatch, arm):
    monkeypatch.setattr(torch_functions.Term, "apply", lambda *x: [1.001 * y for y in torch_functions._compiled(*x)])
    with pytest.raises(GeomctrlError, match=r"'two_link': M of the compiled function differs from Python at q = \["):
        arm.to_torch("mass_matrix")


def test_code_of_a_derivative_is_compared_with_its_trace(monkeypatch):
    robot = testing.random_robot(np.random.default_rng(22), ["revolute", "prismatic"], [-1, 0])
    f, x = robot.to_torch(), torch.ones(9, 2, dtype=REAL, requires_grad=True)
    module = buffer_calls.module
    monkeypatch.setattr(buffer_calls, "module", lambda *x: module(*x).replace("fadd", "fsub", 40))
    monkeypatch.setattr(cache, "kept", lambda key, make: make())
    with pytest.raises(GeomctrlError, match="compiled code differs from its trace on this processor"):
        f(x, x, x).sum().backward()


def test_states_without_a_result_give_nan():
    robot = models.quadrotor()
    f = robot.to_torch("forward_dynamics")
    q, v, tau = states(robot, f, 12)
    expected = robot.forward_dynamics(q, v, tau)
    q[2, 0] += 0.1  # no rotation
    v[5, 1], tau[10, 0] = np.nan, np.inf
    a, bad = f(*tensors([q, v, tau])).numpy(), [2, 5, 10]
    assert np.isnan(a[bad]).all()
    assert_close(np.delete(a, bad, 0), np.delete(expected, bad, 0), 1e-11)


def test_types_of_numbers(arm):
    f = arm.to_torch()
    q, v, a = (torch.tensor(x) for x in np.random.default_rng(10).normal(size=(3, 50, 2)).astype(np.float32))
    expected = arm.inverse_dynamics(*(x.double().numpy() for x in (q, v, a)))
    tau = f(q, v, a)
    assert tau.dtype == torch.float32
    np.testing.assert_array_max_ulp(tau.numpy(), expected.astype(np.float32), 1)
    assert f(q, v.double(), a).dtype == REAL
    whole = torch.ones(2, dtype=torch.int64)
    assert f(whole, whole, whole).dtype == torch.get_default_dtype()
    q.requires_grad_()
    f(q, v, a).sum().backward()
    assert q.grad.dtype == torch.float32


ONE = torch.zeros(2, dtype=REAL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.zeros(3), ONE, ONE), r"q: expected shape \(\.\.\., 2\), got \(3,\)"),
        ((ONE, torch.zeros(()), ONE), r"v: expected shape \(\.\.\., 2\), got \(\)"),
        ((torch.zeros(4, 2), ONE, ONE), r"v: expected the leading axes of q, \(4,\), got \(\) .*torch.vmap"),
        ((ONE, ONE), "inverse_dynamics: expected q, v, a and optionally parameters, got 2 arrays"),
        ((ONE, ONE, ONE.to(torch.complex128)), "a: expected float64 or float32, got complex128"),
        ((ONE, ONE.half(), ONE), "v: expected float64 or float32, got float16"),
        ((ONE, ONE, ONE.bool()), "a: expected float64 or float32, got bool"),
        ((np.zeros(2), ONE, ONE), "q: expected a tensor, got ndarray; torch.as_tensor makes one"),
        ((ONE, ONE.to("meta"), ONE), r"v: expected a dense tensor on the CPU or an NVIDIA GPU, got one of meta"),
        (
            (ONE, ONE, ONE.to_sparse()),
            "a: expected a dense tensor on the CPU or an NVIDIA GPU, got one of torch.sparse_coo",
        ),
        ((ONE, ONE, ONE, torch.zeros(3, 10)), r"parameters: expected shape \(2, 10\), .*got \(3, 10\)"),
    ],
)
def test_wrong_arguments(arm, arguments, message):
    with pytest.raises(ArgumentError, match=message):
        arm.to_torch()(*arguments)


def test_wrong_names_and_versions(monkeypatch, arm):
    with pytest.raises(NameNotFoundError, match=r"term: expected one of inverse_dyn.*jacobian_rate, got 'inverse'"):
        arm.to_torch("inverse")
    with pytest.raises(ArgumentError, match="frame: expected None for the term 'integrate', got 'hand'"):
        arm.to_torch("integrate", frame="hand")
    with pytest.raises(GeomctrlError, match=r"saved by another process: call Robot\.to_torch here"):
        torch_functions._operator("unknown", ONE, ONE, [ONE])
    monkeypatch.setattr(torch, "__version__", "2.1.0")
    with pytest.raises(GeomctrlError, match=r"to_torch needs torch 2\.\d+ or newer, got 2\.1\.0: pip install"):
        arm.to_torch()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(GeomctrlError, match=r"needs the optional package torch: pip install 'geomctrl\[torch\]'"):
        arm.to_torch()


def test_the_guide(capsys):
    text = (Path(__file__).parents[1] / "docs/how-to/pytorch.md").read_text(encoding="utf-8")
    space, default = {}, torch.get_default_dtype()
    try:
        for block in re.findall(r"^```py\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            exec(compile(block, "docs/how-to/pytorch.md", "exec"), space)
    finally:
        torch.set_default_dtype(default)
    assert "with it" in capsys.readouterr().out


@pytest.fixture
def cuda(monkeypatch):
    """A stand-in for cuda-core, whose memory is that of the CPU."""
    monkeypatch.setattr(gpu_calls, "_launcher", lambda: 1)
    return install(monkeypatch, FakeCuda())


@pytest.mark.parametrize("own", [False, True], ids=["shared parameters", "own parameters"])
def test_the_operator_for_gpus_is_that_of_the_cpu(cuda, own):
    f = models.scara().to_torch("forward_dynamics")
    constants, parameters = f._numbers[torch.device("cpu")]
    rows = [x.to(REAL) for x in map(torch.as_tensor, states(f.robot, f, 3, 50))]
    pi = parameters.expand(3, 50, -1) if own else parameters
    (result,) = torch_functions._on_gpu(f._name, constants, pi, rows, stream=1)
    (expected,) = torch_functions._operator(f._name, constants, pi, rows)
    assert_close(result.numpy(), expected.numpy(), 1e-11)
    assert [x[0] for x in cuda.log][-1] == "launch"


def test_pytorch_has_the_operator_for_gpus():
    assert torch._C._dispatch_has_kernel_for_dispatch_key("geomctrl::term", "CUDA")


def test_tensors_of_different_devices_are_refused(arm, monkeypatch):
    monkeypatch.setattr(torch_functions, "DEVICES", ("cpu", "meta"))
    with pytest.raises(ArgumentError, match="v: expected a tensor on the device of q, cpu, got meta"):
        arm.to_torch()(ONE, ONE.to("meta"), ONE)
