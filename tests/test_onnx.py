"""Neural networks from ONNX files: against the onnx package, by hand, and as laws."""

import contextlib
import struct

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from simulation_options import both_ways

import geomctrl as gc
from geomctrl import models, testing
from geomctrl.errors import ArgumentError
from geomctrl.interop import from_onnx

W1 = np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25]])
W2 = np.array([[2.0, -1.0, 0.5]])
B1 = np.array([0.1, -0.2, 0.3])


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(k, value):
    if isinstance(value, int):
        return varint(k << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(k << 3 | 2) + varint(len(value)) + value


def tensor(name, a):
    raw = field(9, np.asarray(a, "<f4").tobytes())
    return b"".join(field(1, n) for n in a.shape) + field(2, 1) + field(8, name) + raw


def node(op, inputs, output, **attributes):
    body = b"".join(field(1, x) for x in inputs) + field(2, output) + field(4, op)
    for name, x in attributes.items():
        value = field(3, x) + field(20, 2) if isinstance(x, int) else b"\x15" + struct.pack("<f", x) + field(20, 1)
        body += field(5, field(1, name) + value)
    return body


def model(nodes, weights, n, kind=1):
    dims = b"".join(field(1, field(1, k)) for k in (1, n))
    x = field(1, "x") + field(2, field(1, field(1, kind) + field(2, dims)))
    graph = b"".join(field(1, o) for o in nodes) + b"".join(field(5, tensor(k, a)) for k, a in weights.items())
    return field(1, 8) + field(7, graph + field(11, x) + field(12, field(1, "y")))


def small_network(activation="Tanh"):
    nodes = [
        node("Gemm", ["x", "W1", "b1"], "h", transB=1, alpha=0.5),
        node(activation, ["h"], "a"),
        node("Gemm", ["a", "W2"], "y", transB=1),
    ]
    return model(nodes, {"W1": W1, "W2": W2, "b1": B1}, 2)


def test_a_file_by_hand_has_the_values_of_numpy(tmp_path):
    weight = {"W1": W1.astype(np.float32).astype(float), "b1": B1.astype(np.float32).astype(float)}
    functions = {"Tanh": np.tanh, "Relu": lambda x: np.maximum(x, 0.0), "Sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x))}
    for name, f in functions.items():
        (tmp_path / "net.onnx").write_bytes(small_network(name))
        network = from_onnx(tmp_path / "net.onnx")
        for x in np.random.default_rng(0).normal(size=(8, 2)):
            np.testing.assert_allclose(
                network(x), W2 @ f(0.5 * weight["W1"] @ x + weight["b1"]), rtol=1e-13, atol=1e-13
            )


def test_constants_that_are_numbers_and_attributes_that_writers_omit_because_they_are_zero(tmp_path):
    path = tmp_path / "net.onnx"
    leaky = node("LeakyRelu", ["x"], "h") + field(5, field(1, "alpha") + field(20, 1))
    path.write_bytes(
        model([leaky, node("Constant", [], "two", value_float=2.0), node("Mul", ["h", "two"], "y")], {}, 2)
    )
    np.testing.assert_array_equal(from_onnx(path)([-3.0, 5.0]), [0.0, 10.0])
    path.write_bytes(model([node("Constant", [], "two", value_int=2), node("Mul", ["x", "two"], "y")], {}, 2))
    with pytest.raises(ArgumentError, match="a Constant with value or value_float, got 'value_int'"):
        from_onnx(path)


def test_a_damaged_file_is_refused_or_read(tmp_path):
    whole, rng, path = small_network(), np.random.default_rng(0), tmp_path / "net.onnx"
    damaged = [whole[:k] for k in range(0, len(whole), 3)]
    for _ in range(300):
        data = bytearray(whole)
        data[rng.integers(len(data))] = rng.integers(256)
        damaged.append(bytes(data))
    read = 0
    for data in damaged:
        path.write_bytes(data)
        with np.errstate(all="ignore"), contextlib.suppress(ArgumentError):
            from_onnx(path)
            read += 1
    assert read < len(damaged) * 2 // 3


def test_an_unknown_operation_is_named(tmp_path):
    (tmp_path / "net.onnx").write_bytes(model([node("LSTM", ["x"], "y")], {}, 2))
    with pytest.raises(ArgumentError, match="LSTM"):
        from_onnx(tmp_path / "net.onnx")
    with pytest.raises(ArgumentError, match="path"):
        from_onnx(tmp_path / "missing.onnx")


def test_inputs_of_whole_numbers_are_converted_and_networks_of_them_refused(tmp_path):
    """ONNX divides whole numbers without remainder, and numpy negates unsigned ones without sign."""
    path, nodes = tmp_path / "net.onnx", [node("Neg", ["x"], "n"), node("Tanh", ["n"], "y")]
    path.write_bytes(model(nodes, {}, 3))
    network, x = from_onnx(path), np.array([1, 2, 3])
    for dtype in (np.uint8, np.float16, np.float32, np.int64):
        np.testing.assert_allclose(network(x.astype(dtype)), -np.tanh(x.astype(float)), rtol=1e-14)
    for wrong in ([1.0, 2.0], [[1.0, 2.0, 3.0]], "abc", [1.0, np.nan, 2.0]):
        with pytest.raises(ArgumentError, match="x:"):
            network(wrong)
    for kind in (2, 6, 7, 9):
        path.write_bytes(model(nodes, {}, 3, kind))
        with pytest.raises(ArgumentError, match="input of float or double"):
            from_onnx(path)


def test_a_small_file_with_large_results_is_refused_without_computing_them(tmp_path):
    path, weights = tmp_path / "net.onnx", {"one": np.ones((1, 1))}
    column = node("Gemm", ["x", "one"], "c", transA=1)
    for nodes, n in (
        ([node("Neg", ["x"], "y")], 1 << 40),
        ([column, node("Add", ["x", "c"], "y")], 1 << 20),  # 8 TiB
        ([column, node("MatMul", ["c", "x"], "y")], 1 << 20),
        ([column, node("Gemm", ["x", "x"], "y", transA=1)], 1 << 20),
        ([node("Neg", ["x"], "a")] + [node("Neg", ["a"], "y")] * 20, 1 << 20),
    ):
        path.write_bytes(model(nodes, weights, n))
        with pytest.raises(ArgumentError, match="at most 16777216 numbers"):
            from_onnx(path)


def test_operations_have_the_values_of_onnx(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    rng = np.random.default_rng(1)
    for trial in range(12):
        kind, dtype = (TensorProto.DOUBLE, np.float64) if trial % 2 else (TensorProto.FLOAT, np.float32)
        weights = {"W": (3, 4), "b": (4,), "V": (2, 4), "c": (2,), "s": (1, 4), "d": (4,)}
        arrays = {k: rng.normal(size=shape).astype(dtype) for k, shape in weights.items()}
        activations = list(rng.choice(["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Neg", "Identity"], 3))
        nodes = [
            helper.make_node("Constant", [], ["shape"], value=numpy_helper.from_array(np.array([0, -1]), "shape")),
            helper.make_node("Flatten", ["x"], ["flat"], axis=1),
            helper.make_node("Reshape", ["flat", "shape"], ["f"]),
            helper.make_node("MatMul", ["f", "W"], ["m"]),
            helper.make_node("Add", ["m", "b"], ["n"]),
            helper.make_node(activations[0], ["n"], ["p"]),
            helper.make_node("Mul", ["p", "s"], ["r"]),
            helper.make_node(activations[1], ["r"], ["t"]),
            helper.make_node("Sub", ["t", "d"], ["u"]),
            helper.make_node("Div", ["u", "d"], ["w"]),
            helper.make_node("Gemm", ["w", "V", "c"], ["z"], transB=1, alpha=1.5, beta=float(rng.normal())),
            helper.make_node(activations[2], ["z"], ["y"]),
        ]
        x_info = helper.make_tensor_value_info("x", kind, ["batch", 1, 3])
        y_info = helper.make_tensor_value_info("y", kind, ["batch", 2])
        tensors = [numpy_helper.from_array(a, k) for k, a in arrays.items()]
        if trial % 3 == 0:
            tensors = [helper.make_tensor(k, kind, a.shape, a.ravel().tolist()) for k, a in arrays.items()]
        graph = helper.make_graph(nodes, "g", [x_info], [y_info], tensors)
        whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(whole)
        onnx.save(whole, tmp_path / "net.onnx")
        network, reference = from_onnx(tmp_path / "net.onnx"), ReferenceEvaluator(whole)
        for x in rng.normal(size=(4, 3)):
            expected = np.ravel(reference.run(None, {"x": x.reshape(1, 1, 3).astype(dtype)})[0])
            tolerance = 1e-12 if dtype == np.float64 else 1e-4
            np.testing.assert_allclose(network(x.astype(dtype)), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("activation", ["Tanh", "Relu", "Sigmoid"])
def test_motions_under_a_network_are_in_its_tube(tmp_path, activation):
    """The network is a spring and a damper of the first joint that is not linear."""
    (tmp_path / "net.onnx").write_bytes(small_network(activation))
    network, robot = from_onnx(tmp_path / "net.onnx"), models.two_link()

    def law(t, q, v, z):
        u = network(np.array([q[0] - 0.4, v[0]]))
        return gc.control.Command(robot.gravity_force(q) - 8.0 * v - np.array([3.0 * u[0], 0.0]))

    x0 = np.array([0.4, 1.1, 0.0, 0.0])
    tube = testing.reach(robot, law, (x0 - 0.01, x0 + 0.01), 0.25)
    assert tube
    lo, hi = tube.box(0.25)

    def rates(t, x):
        return np.concatenate([x[2:], robot.forward_dynamics(x[:2], x[2:], law(t, x[:2], x[2:], None).tau)])

    for start in x0 + 0.01 * np.random.default_rng(0).choice([-1.0, 1.0], (4, 4)):
        x = solve_ivp(rates, (0.0, 0.25), start, "DOP853", rtol=1e-10, atol=1e-12).y[:, -1]
        assert (lo - 1e-9 <= x).all()
        assert (x <= hi + 1e-9).all()
    assert (hi - lo < 0.3).all()
    false = tube.stays("q[0]", upper=float(lo[0]) + 1e-4)
    assert false.status == "refuted"


def test_a_compiled_loop_with_a_network_is_that_of_python(tmp_path):
    (tmp_path / "net.onnx").write_bytes(small_network("Relu"))
    network, robot = from_onnx(tmp_path / "net.onnx"), models.two_link()

    def law(t, q, v, z):
        return gc.control.Command(network(q) * np.ones(2) - 5.0 * v)

    runs = both_ways(robot, law, [0.1, 0.2], [0.0, 0.0], t_end=0.1, dt=1e-3)
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=1e-12, atol=1e-13)
