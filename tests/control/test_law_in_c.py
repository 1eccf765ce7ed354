"""Laws in C: one call per sample agrees with a sampled loop in Python; names; arrays that share memory."""

import ctypes
import math
import re
import shutil
import subprocess

import laws_with_state
import numpy as np
import pytest
from laws_with_state import OnGroup, Starting
from simulation_options import flat_simulate

import geomctrl as gc
from geomctrl import controllers, models, references
from geomctrl.errors import ArgumentError

GCC, CLANG = shutil.which("gcc") or shutil.which("cc"), shutil.which("clang")
WARNINGS = ["-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion"]
C = ["-std=c99", *WARNINGS]
CPLUSPLUS = ["-x", "c++", "-std=c++17", *WARNINGS]
pytestmark = pytest.mark.skipif(GCC is None, reason="no C compiler on this machine")


def run_test(files, *, compiler=GCC, flags=C):
    """Return what the test program prints; its exit status must be 0."""
    _, source, test = files
    program = source.with_suffix(".exe")
    subprocess.run([compiler, *flags, "-o", program, source, test, "-lm"], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def library(files):
    _, source, _ = files
    built = source.with_suffix(".so")
    subprocess.run([GCC, *C, "-fPIC", "-shared", "-o", built, source, "-lm"], check=True)
    return ctypes.CDLL(str(built))


def pointer(a):
    return a.ctypes.data_as(ctypes.c_void_p)


class Sampled(laws_with_state.Sampled):
    def signals(self, t, q, v, z):
        return {"e [rad]": q - 0.3, "e (rad)": 2.0 * z[0], "int": t, "no": np.zeros(0)}


def adaptive():
    robot = models.two_link()
    return controllers.SlotineLi(robot, references.Sinusoids(robot, [0.3, 0.6], amplitude=0.3, frequency=0.5))


LAWS = {
    "adaptive": adaptive,
    "next": lambda: Sampled(("z_next",)),
    "rate": lambda: Sampled(("z_rate",)),
    "both": Sampled,
    "group": OnGroup,
    "starting": Starting,
    "no state": lambda: controllers.PDGravity(models.two_link(), [0.2, 0.1]),
}


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", LAWS)
def test_one_call_a_sample_is_a_sampled_loop(name, tmp_path):
    """Repeat the torques and states of a run in Python, by NAME_start and NAME_step from its q and v."""
    law, dt = LAWS[name](), 2e-3
    q0, v0 = np.array([0.2, -0.4]), np.array([0.5, 0.1])
    run = flat_simulate(law.robot, law, q0, v0, 0.1, 1e-3, control_dt=dt, monitors=None, method="MK4", compiled=False)
    compiled = gc.compile(law)
    loaded = library(compiled.to_c(tmp_path, "ctrl"))
    z = np.zeros(0 if run.z is None else run.z[0].size)
    if z.size:
        loaded.ctrl_start(*((pointer(q0), pointer(v0)) if name == "starting" else ()), pointer(z))
        np.testing.assert_allclose(z, run.z[0].ravel(), rtol=1e-15)
    double, step, tau = ctypes.c_double, loaded.ctrl_step, np.zeros(2)
    for k in range(0, len(run.t), 2):
        q, v = (np.ascontiguousarray(x[k]) for x in (run.q, run.v))
        if z.size:
            np.testing.assert_allclose(z, run.z[k].ravel(), rtol=1e-12, atol=1e-13)
        times = [double(run.t[k]), *([double(dt)] if "z_rate" in compiled.outputs else [])]
        assert step(*times, pointer(q), pointer(v), *([pointer(z)] if z.size else []), pointer(tau)) == 1
        np.testing.assert_allclose(tau, run.tau[k], rtol=1e-12, atol=1e-12)


@pytest.mark.quick(3)
@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("name", LAWS)
def test_the_exported_test_agrees_in_c_and_cplusplus(name, precision, tmp_path):
    files = gc.compile(LAWS[name]()).to_c(tmp_path, "ctrl", precision=precision)
    printed = run_test(files)
    assert "ctrl_step, tau: off by" in printed
    assert "ctrl_command, tau, in the memory of q: off by" in printed
    run_test(files, flags=CPLUSPLUS)
    if CLANG:
        run_test(files, compiler=CLANG)


def test_sanitizers_find_nothing(tmp_path):
    for name in ("both", "group", "starting"):
        files = gc.compile(LAWS[name]()).to_c(tmp_path, "ctrl")
        run_test(files, flags=[*C, "-g", "-fsanitize=undefined,address", "-fno-sanitize-recover=all"])


@pytest.mark.quick(5)
@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("z[1] = 0.0", "z[1] = 0.001", ""),
        ("dt * z_rate", "1.01 * dt * z_rate", "ctrl_step, z"),
        ("memcpy(tau, torque, sizeof torque)", "tau[0] = 0; tau[1] = torque[1]", "ctrl_step, tau"),
        ("0.8", "0.801", "ctrl_command, z_next"),
        ("", "", "in the memory of q"),
    ],
)
def test_the_exported_test_finds_wrong_code(old, new, where, precision, tmp_path):
    class Wrong(Sampled):
        def __call__(self, t, q, v, z):
            return super().__call__(t, q, v, z)._replace(signals={"q": q[::-1]})

    _, source, test = gc.compile(Wrong()).to_c(tmp_path, "ctrl", precision=precision)
    text = source.read_text()
    if not new:  # read inputs late, after outputs have been written
        result = dict(re.findall(r"    const (?:double|float) (t\d+) = (q\[\d\]);\n", text))
        assert set(result.values()) == {"q[0]", "q[1]"}
        for name, x in result.items():
            text = text.replace(f"    const {precision} {name} = {x};\n", "").replace(f"= {name};", f"= {x};")
    assert old in text or not new
    source.write_text(text.replace(old, new) if new else text)
    program = tmp_path / "program"
    subprocess.run([GCC, "-o", program, source, test, "-lm"], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 1
    assert where in done.stdout


def test_where_there_is_no_result_everything_stays(tmp_path):
    class Partial(gc.Controller):
        robot = models.two_link()

        def start(self):
            return np.array([1.0, 2.0])

        def __call__(self, t, q, v, z):
            return gc.Command(np.linalg.inv(np.diag(q)) @ v, z)

    loaded = library(gc.compile(Partial()).to_c(tmp_path, "ctrl"))
    q, v, z, tau = np.array([0.0, 1.0]), np.ones(2), np.array([1.0, 2.0]), np.array([7.0, 8.0])
    assert loaded.ctrl_step(ctypes.c_double(0.0), ctypes.c_double(0.1), *map(pointer, (q, v, z, tau))) == 0
    assert z.tolist() == [1.0, 2.0]
    assert tau.tolist() == [7.0, 8.0]
    rate = np.array([3.0, 4.0])
    assert loaded.ctrl_command(ctypes.c_double(0.0), *map(pointer, (q, v, z, tau, rate))) == 0
    assert (tau.tolist(), rate.tolist()) == ([7.0, 8.0], [3.0, 4.0])
    q[0] = 2.0
    assert loaded.ctrl_step(ctypes.c_double(0.0), ctypes.c_double(0.1), *map(pointer, (q, v, z, tau))) == 1
    np.testing.assert_allclose(z, [1.1, 2.2])
    np.testing.assert_allclose(tau, [0.5, 1.0])


@pytest.mark.parametrize(
    "name", ["", "3r", "_x", "a__b", "é", "a b", "x.y", "math", "Signal", "string", "con", 7, None]
)
def test_names_of_files_that_are_refused(name, tmp_path):
    with pytest.raises(ArgumentError, match="name: expected"):
        gc.compile(LAWS["no state"]()).to_c(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ["int", "class", "sin", "read", "tau", "main", "log", "NULL", "t1", "signal_e"])
def test_names_that_c_or_its_libraries_have_taken_are_prefixes(name, tmp_path):
    """No other function has the names NAME_step and so on."""
    files = gc.compile(Sampled()).to_c(tmp_path, name)
    run_test(files)
    run_test(files, flags=CPLUSPLUS)


def test_signals_have_names_of_their_own(tmp_path):
    law = gc.compile(Sampled())
    header = law.to_c(tmp_path, "ctrl")[0].read_text()
    for words in ("signal_e_rad[2]: signal 'e [rad]'", "signal_e_rad_2[1]: signal 'e (rad)'", "signal_int[1]"):
        assert words in header
    assert list(law.outputs) == ["tau", "z_rate", "z_next", "e [rad]", "e (rad)", "int", "no"]


def test_the_test_program_has_no_states_without_result_in_c(tmp_path):
    class Correlated:
        """nan in Python and no result in C at rest at the origin, one of the trial states."""

        robot = models.two_link()

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            with np.errstate(all="ignore"):
                return gc.Command(-q - math.exp2(np.corrcoef(q, v + t * q)[0, 1]))

    run_test(gc.compile(Correlated()).to_c(tmp_path, "correlated"))
