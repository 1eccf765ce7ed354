"""The origin of a report: checksums as sha256sum computes them, and a call that can be repeated."""

import hashlib
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from geomctrl import models
from geomctrl.identification import (
    Column,
    Curve,
    Dataset,
    Filtering,
    JointMapping,
    Reading,
    RegressorModel,
    Settings,
    Validation,
    fit,
    identify,
)
from geomctrl.identification.report.provenance import checksum, provenance

ROBOT = models.two_link()


def arrays(n=2000):
    t = np.arange(n) / 100.0
    q = np.stack((np.sin(2.1 * t), np.cos(3.7 * t)), -1)
    v = np.stack((2.1 * np.cos(2.1 * t), -3.7 * np.sin(3.7 * t)), -1)
    a = np.stack((-(2.1**2) * np.sin(2.1 * t), -(3.7**2) * np.cos(3.7 * t)), -1)
    return {"t": t, "q": q, "tau": RegressorModel(ROBOT).torque(RegressorModel(ROBOT).prior, q, v, a)}


def test_a_file_has_the_sum_that_sha256sum_gives(tmp_path):
    path = tmp_path / "log.npz"
    np.savez(path, **arrays())
    result = checksum(path)
    wanted = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
    assert (result.name, result.sha256, result.of) == ("log.npz", wanted, "the file")


def test_a_folder_has_the_sum_of_its_files_lines(tmp_path):
    (tmp_path / "bag" / "deep").mkdir(parents=True)
    (tmp_path / "bag" / "b.db3").write_bytes(b"data")
    (tmp_path / "bag" / "deep" / "a.yaml").write_bytes(b"more")
    lines = subprocess.run(
        ["sha256sum", "b.db3", "deep/a.yaml"], cwd=tmp_path / "bag", capture_output=True, check=True
    ).stdout
    assert checksum(tmp_path / "bag").sha256 == hashlib.sha256(lines).hexdigest()
    before = checksum(tmp_path / "bag")
    (tmp_path / "bag" / "b.db3").rename(tmp_path / "bag" / "c.db3")
    assert checksum(tmp_path / "bag") != before  # a name is an argument, too


def test_a_dataset_has_the_sum_of_its_arrays():
    data = Dataset(**arrays())
    total = hashlib.sha256()
    for name in ("t", "q", "tau"):
        total.update(name.encode() + arrays()[name].tobytes())
    assert checksum(data).sha256 == total.hexdigest()
    assert "in memory" in checksum(data).of
    tau = data.tau.copy()
    tau[7, 1] = np.nextafter(tau[7, 1], 1e9)
    assert checksum(replace(data, tau=tau)) != checksum(data)


def test_the_call_makes_the_same_again(tmp_path):
    path, other = tmp_path / "lo'g.npz", tmp_path / "other.npz"
    np.savez(path, **arrays())
    np.savez(other, **arrays(1500))
    inputs = {
        "method": "ridge",
        "options": {"strength": 1e-4},
        "model": RegressorModel(ROBOT, smoothing=0.05, curves=[Curve(1, "sigmoid", 2.0)], viscous=[0]),
        "filtering": Filtering(12.0, decimate=2, alike=False),
        "reading": Reading(units={"q": "rad"}, mapping=JointMapping([1.0, 1.0], [0.0, 0.0]), drop_bad_rows=True),
        "validation": Validation(other),
    }
    report = identify(ROBOT, path, **inputs)
    source = report.provenance
    assert [log.name for log in source.logs] == ["lo'g.npz", "other.npz"]
    call, _, comment = source.call.partition("  # ")
    assert comment == "robot: 'two_link'"
    assert "torque_cutoff" not in call  # a default
    names = {"robot": ROBOT, **{f.__name__: f for f in (
        identify, RegressorModel, Curve, Filtering, Reading, JointMapping, Validation)}}  # fmt: skip
    again = eval(call, names)
    np.testing.assert_array_equal(again.estimate.x, report.estimate.x)
    assert again.errors["test"]["rmse"] == report.errors["test"]["rmse"]
    assert again.provenance == source
    assert dict(source.versions)["numpy"] == np.__version__


def test_what_can_not_be_written_as_python_is_named():
    column = Column("wind", lambda q, v, a: v**2)
    data = Dataset(**arrays())
    created = provenance(ROBOT, data, Settings(), RegressorModel(ROBOT, columns=[column]))
    assert "<Dataset 'log'" in created.call
    assert "Column(name='wind', torque=" in created.call
    assert "progress" not in created.call


def test_a_report_put_together_by_hand_has_none():
    model = RegressorModel(ROBOT)
    data = Dataset(**arrays()).filtered(10.0)
    from geomctrl.identification import Result

    assert Result(fit(model, data, "ols"), data).provenance is None


@pytest.mark.parametrize("name", ["smoothing", "transmission", "columns"])
def test_a_model_s_options_are_those_that_differ(name):
    value = {"smoothing": 0.3, "transmission": [[1, 0], [1, 1]], "columns": [Column("x", lambda q, v, a: v)]}[name]
    assert list(RegressorModel(ROBOT, **{name: value}).options) == [name]
    assert RegressorModel(ROBOT).options == {}
