"""Fixtures of several packages."""

import contextlib
import functools
import gc
import os
import platform
import signal
import sys
import tempfile
import time
import zlib
from pathlib import Path

import pytest

pytest_plugins = ["pytester", "geomctrl.testing.plugin"]  # the latter also where it is not installed


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of what a shell starts in the background: tests send Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    """Make the tests quick to collect, and independent of the tests before them."""
    gc.disable()  # until they are collected: next to nothing of what is imported is garbage
    # pytest rewrites the assertions of all modules of a package that holds a plugin. No test needs those of the
    # library, and rewriting its 600 modules would take longer than collecting every test.
    finder = getattr(config.pluginmanager, "rewrite_hook", None)
    getattr(finder, "_must_rewrite", set()).discard("geomctrl")
    getattr(finder, "_marked_for_rewrite_cache", {}).clear()

    if "not slow" in config.option.markexpr:
        os.environ["GEOMCTRL_QUICK_TESTS"] = "1"
        _leave_in_python()
        _generate_code_quickly()
    _fix_what_is_compiled()
    _trace_each_time()


def _trace_each_time():
    """Tests of traces would otherwise get those of earlier processes; processes that tests start may use them."""
    from geomctrl.control.compiled import stored_traces

    stored_traces.enabled = False


def _fix_what_is_compiled():
    """Straight-line code for the small bundled robots, which many tests share; numba's loops for all others.

    By default a process compiles the terms of the robots that it meets first, and of others those it calls often: what
    a test runs, and its results' last bits, would depend on the tests before it. See `compiled_terms`.
    """
    from geomctrl.compiler import code

    code.EAGER, code.CALLS = 0, 10**12
    shared, small = code._structure, _small_bundled_robots()

    def structure(pattern):
        result = shared(pattern)
        result.eager = result.eager or pattern in small
        return result

    structure.cache_clear = shared.cache_clear
    code._structure = structure


# algorithms that quick tests call a few times: numba would take a second for each, some of them five
SELDOM_CALLED = {
    *("articulated_handles", "body_wrenches", "center_of_mass", "centroidal_momentum", "coriolis_transpose_product"),
    *("derivatives_along", "forward_dynamics_derivatives", "geometric_sensitivity", "hybrid_inverse_dynamics"),
    *("inverse_dynamics_rates", "mass_matrix_derivative", "mass_matrix_in_motion"),
    *("mass_matrix_inverse", "mass_matrix_product", "mass_matrix_solve", "momentum_rate_regressor"),
    *("momentum_regressor", "operational_inertia", "operational_mobility", "second_derivatives"),
    *("second_order_products", "spatial_inverse_dynamics"),
}  # and all of robots with coupled joints


def _generate_code_quickly():
    """Let LLVM generate code at its lowest level: most code runs a few times only, and its results have the same bits.

    Code generation took a quarter of the time. `make test-all`, and processes that tests start, use the usual level.
    """
    import llvmlite.binding as llvm

    from geomctrl.tracing.backends import host

    if platform.machine() in ("x86_64", "AMD64"):
        host.OPTIMISATION = 0
        llvm.set_option("geomctrl", "-fast-isel=false")  # the selector of level 0 would not contract to fma
        _let_numba_generate_code_quickly()


def _let_numba_generate_code_quickly():
    """The same for kernels, a sixth of their compilation; `magic_tuple` is a part of the names of cached files."""
    from numba.core.codegen import JITCPUCodegen

    set_options, processor = JITCPUCodegen._customize_tm_options, JITCPUCodegen.magic_tuple
    if processor.__name__ == "quick_tuple":  # `test_selection` loads this file again: one name for a kernel's file
        return

    def customize(self, options):
        set_options(self, options)
        options["opt"] = 0

    def quick_tuple(self):
        return (*processor(self), "-O0")

    JITCPUCodegen._customize_tm_options = customize
    JITCPUCodegen.magic_tuple = quick_tuple
    _leave_primitives_to_kernels()
    _compare_flags_quickly()
    _announce_no_events()
    _compile_each_kernel_once()


def _compare_flags_quickly():
    """Numba builds two dictionaries of thirty flags for each comparison, a twentieth of a kernel's compilation."""
    from numba.core.targetconfig import TargetConfig

    defaults = functools.cache(lambda kind: {name: option.default for name, option in kind.options.items()})
    TargetConfig.values = lambda self: defaults(type(self)) | self._values
    TargetConfig.__hash__ = lambda self: hash(type(self))  # numba's is that of the flags' names


def _announce_no_events():
    """Numba reports passes and locks to listeners; without, as here, kernels compile a twentieth faster."""
    from numba.core import event

    silent = contextlib.nullcontext()
    event.trigger_event = lambda *args, **options: silent
    event.start_event = event.end_event = lambda *args, **options: None


def _compile_each_kernel_once():
    """Of two processes that need the same kernel one compiles it, and the other waits and loads it."""
    if os.name != "posix":
        return
    import fcntl

    from geomctrl.kernels.numba_loops import _Cache

    load, save = _Cache.load_overload, _Cache.save_overload
    path = Path(tempfile.gettempdir(), f"geomctrl-tests-{os.getuid()}.lock")
    locks = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)  # one byte for each kernel

    def lock(self, how):
        fcntl.lockf(locks, how, 1, zlib.crc32(self.title.encode()))

    def load_overload(self, signature, target_context):
        for _ in range(200):  # at most 20 s: a process whose compilation fails keeps its lock
            if self.is_stored(target_context):
                break
            with contextlib.suppress(OSError):
                lock(self, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.1)
        return load(self, signature, target_context)

    def save_overload(self, signature, result):
        save(self, signature, result)
        lock(self, fcntl.LOCK_UN)

    _Cache.load_overload, _Cache.save_overload = load_overload, save_overload


def _leave_primitives_to_kernels():
    """Kernels inline all primitives, so optimising and compiling these on their own as well takes a tenth."""
    from numba.core.codegen import CPUCodeLibrary, JITCPUCodegen

    optimise, finish = CPUCodeLibrary._optimize_final_module, CPUCodeLibrary._finalize_final_module
    set_environment = JITCPUCodegen.set_env

    def is_primitive(library):
        names = [f.name for f in library._final_module.functions if not f.is_declaration]
        called = any(name.startswith(("_ZN7cpython", "cfunc.")) for name in names)
        return not called and any(name.startswith("_ZN8geomctrl7kernels") for name in names)

    def optimise_kernel(self):
        if not is_primitive(self):
            optimise(self)

    def finish_kernel(self):
        if is_primitive(self):
            self._finalize_dynamic_globals()
            self._finalized = True
        else:
            finish(self)

    def set_environment_of_kernel(self, name, environment):
        if self._engine.get_global_value_address(name):
            set_environment(self, name, environment)

    CPUCodeLibrary._optimize_final_module = optimise_kernel
    CPUCodeLibrary._finalize_final_module = finish_kernel
    JITCPUCodegen.set_env = set_environment_of_kernel


collecting = True  # until the tests are collected


def _leave_in_python():
    """Seldom called algorithms; all others while tests are collected, or each worker would compile the same kernels."""
    from geomctrl.kernels import algorithms, jit, numba_loops

    numba = jit.compiled

    def seldom_called(function):
        name = function.__name__.rpartition("_")[0]
        return name in SELDOM_CALLED or name.startswith("coupled_")

    def of_kernel(function, signature, strict=False):
        seldom = seldom_called(function)
        return numba_loops.uncompiled_entry(function, signature) if seldom else numba(function, signature, strict)

    def entry(function, signature):
        seldom = seldom_called(function)
        if not (seldom or collecting):
            return numba(function, signature)
        python = numba_loops.uncompiled_entry(function, signature)
        if seldom:
            return python
        later = functools.cache(lambda: numba(function, signature))

        @functools.wraps(function)
        def call(*args):
            return (python if collecting else later())(*args)

        call.py_func = function
        return call

    algorithms.compiled, jit.compiled = entry, of_kernel
    _leave_kernels_in_python(jit.Kernel)


def _leave_kernels_in_python(kernel):
    """The same for entries that are no algorithms, such as exponentials."""
    from geomctrl.kernels import numba_loops

    numba = kernel.__call__

    def call(self, *args):
        if collecting:
            return numba_loops.uncompiled_entry(self.py_func, self.signature)(*args)
        return numba(self, *args)

    kernel.__call__ = call


def _small_bundled_robots():
    from geomctrl import models
    from geomctrl.compiler.kernel_traces import structure

    robots = map(models.load, models.names())
    return tuple(structure(robot._model).tobytes() for robot in robots if robot.nv <= 7)


@pytest.fixture
def compiled_terms(monkeypatch):
    """Robots that this test makes compute their terms by straight-line code."""
    from geomctrl.compiler import code

    code._structure.cache_clear()
    monkeypatch.setattr(code, "EAGER", 10**12)
    yield
    code._structure.cache_clear()


@pytest.fixture(params=["python", pytest.param("numba", marks=pytest.mark.slow)])
def kernels(request, monkeypatch):
    """Algorithms run as the Python functions that they are written as, which needs no compilation; slow: in numba."""
    if request.param == "numba":
        return
    from geomctrl.kernels import algorithms, numba_loops

    entries = {}

    def entry_of(name, make):
        return property(lambda self: entries[self, name] if (self, name) in entries else kept(self, name, make))

    def kept(self, name, make):
        entries[self, name] = make(self)
        return entries[self, name]

    monkeypatch.setattr(algorithms, "compiled", numba_loops.uncompiled_entry)
    for name in ("one", "many"):  # properties of a class come before what its objects hold
        monkeypatch.setattr(algorithms.Algorithm, name, entry_of(name, vars(algorithms.Algorithm)[name].func))


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items):
    """Mark slow all but n parameter sets, evenly spaced, of a test marked `quick(n)`."""
    sets = {}
    for item in items:
        if item.get_closest_marker("quick") and not item.get_closest_marker("slow"):
            sets.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for same_test in sets.values():
        (count,) = same_test[0].get_closest_marker("quick").args
        chosen = {k * len(same_test) // count for k in range(count)}
        for k in set(range(len(same_test))) - chosen:
            same_test[k].add_marker("slow")


def pytest_collection_finish(session):
    global collecting
    collecting = False
    gc.freeze()  # modules and tests stay until the end
    gc.set_threshold(200_000, 10, 1000)  # Python's 700 objects cost a tenth of the time, whole collections half of it
    gc.enable()
    for module in {item.module for item in session.items}:
        sys.modules.pop(module.__name__, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Only the test's own module is imported: a trace looks at all modules of users, and here these are 400."""
    sys.modules[item.module.__name__] = item.module
    try:
        return (yield)
    finally:
        del sys.modules[item.module.__name__]


def pytest_generate_tests(metafunc):
    """`bundled` is each robot of geomctrl.models."""
    if "bundled" in metafunc.fixturenames:
        from geomctrl import models

        metafunc.parametrize("bundled", models.names(), indirect=True, scope="module")


@pytest.fixture(scope="module")
def bundled(request):
    from geomctrl import models

    return models.load(request.param)


def pytest_terminal_summary(terminalreporter):
    """Counts that tests report."""
    for report in terminalreporter.getreports("passed"):
        for name, line in report.user_properties:
            if name == "count":
                terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def panda():
    from geomctrl import models

    return models.panda()
