"""The benchmark of NVIDIA GPUs, executed on a stand-in: it prints every cell, and errors are below their bounds."""

import numpy as np
import pytest
from benchmarks import benchmark_cuda
from fake_cuda import FakeCuda
from lib.results import Results
from loops_on_fake_gpu import install

from geomctrl.tracing.backends import gpu

BATCHES = [16, 64]
CELLS = {f"{precision}_{x}" for precision in ("double", "float") for x in ("resident_us", "transfers_us", "error")}


@pytest.fixture
def cuda(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(benchmark_cuda, "RESULTS", Results("cuda"))
    monkeypatch.setattr(benchmark_cuda, "GOALS", {})
    monkeypatch.setattr(benchmark_cuda, "warp_peer", lambda *arguments: None)  # has a device of its own
    return install(monkeypatch, FakeCuda())


def check_rows(rows, printed):
    assert [row["batch"] for row in rows] == BATCHES
    for row in rows:
        assert row.keys() >= CELLS
        assert all(0.0 < row[name] < np.inf for name in CELLS if name.endswith("us"))
        assert 0.0 <= row["double_error"] <= 1e-12 < 1e-8 < row["float_error"] <= 1e-4
        cells = f"{row['batch']:9}{row['double_resident_us']:17.1f}{row['double_transfers_us']:11.1f}"
        assert cells in printed


def test_a_term_has_all_its_cells(cuda, capsys):
    assert benchmark_cuda.table(benchmark_cuda.models.panda(), "inverse_dynamics", BATCHES, 0.01) == []
    check_rows(benchmark_cuda.RESULTS.tables["inverse_dynamics"], capsys.readouterr().out)
    assert len({line[1] for line in cuda.log if line[0] == "launch"} - {1, 2}) == 2 * len(BATCHES)  # a stream each


@pytest.mark.slow
def test_the_script_prints_and_keeps_all_cells(cuda, capsys):
    with pytest.raises(SystemExit) as end:
        benchmark_cuda.main(quick=True, largest=BATCHES[-1], loops=4, t_end=0.3)
    assert end.value.code == 0
    tables, printed = benchmark_cuda.RESULTS.tables, capsys.readouterr().out
    for term in benchmark_cuda.TERMS:
        check_rows(tables[term], printed)
    assert len(tables["kernels"]) == 2 * len(benchmark_cuda.TERMS)
    assert [(row["precision"], row["loops"]) for row in tables["loops"]] == [("double", 4), ("float", 4)]
    for row, bound in zip(tables["loops"], (1e-9, 1e-4)):
        assert 0.0 < row["kernel_s"] < row["sweep_s"]
        assert row["error"] <= bound
    assert [row["device"] for row in tables["device"]] == [cuda.devices[0].name]
    assert tables["device"][0].keys() >= {"clock_MHz", "memory_clock_MHz"}
    assert tables["device"][0]["memory_GiB"] == 128.0
    assert (benchmark_cuda.Path("out/bench") / "cuda.json").exists()


@pytest.mark.parametrize("where", ["resident", "copied"])
def test_a_wrong_result_is_reported(cuda, monkeypatch, where):
    results = benchmark_cuda.Batch.results

    def wrong(self):
        for y, copy in results(self):
            changed = np.array(y if where == "resident" else copy)
            changed.flat[-1] += 1.0
            yield (changed, copy) if where == "resident" else (y, changed)

    monkeypatch.setattr(benchmark_cuda.Batch, "results", wrong)
    bad = benchmark_cuda.table(benchmark_cuda.models.two_link(), "gravity_force", [16], 0.01)
    assert [line.partition(": error")[0] for line in bad] == [
        f"gravity_force, 16 states, {p}" for p in ("double", "float")
    ]


def test_a_missed_goal_is_reported(cuda, monkeypatch):
    monkeypatch.setattr(benchmark_cuda, "GOALS", {("gravity_force", "float"): 1e30, ("gravity_force", "double"): 1e-30})
    bad = benchmark_cuda.table(benchmark_cuda.models.two_link(), "gravity_force", [16], 0.01)
    assert len(bad) == 1
    assert bad[0].startswith("gravity_force, float: ")


def test_loops_that_do_not_reach_the_gpu_are_reported(cuda):
    assert benchmark_cuda.closed_loops(4, 0.02, "double") == [
        "loops, double: the GPU was not used"
    ]  # too short for code


def test_a_machine_without_a_gpu_is_skipped(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "why_not", lambda: "no driver")
    benchmark_cuda.main()
    assert capsys.readouterr().out == "skipped: no driver\n"
