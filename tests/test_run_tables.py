"""Runs as xarray.Dataset and pandas.DataFrame: every number is there, under the name of its joint."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import actuators, controllers, models, references, sensors

pytest.importorskip("xarray", reason="needs the extra `tables`")


@pytest.fixture(scope="module")
def run():
    robot = models.panda()
    motion = references.Sinusoids(robot, [0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8], 0.3, 0.4)
    plant = gc.Plant(robot, actuators=actuators.Lag(0.01), sensors=sensors.Encoder(14))
    law, start = controllers.SlotineLi(robot, motion), motion(0.0)
    return gc.simulate(plant, law, start.q, start.v, 0.02, 1e-3, control_dt=1e-3)


def test_a_dataset_has_all_arrays(run):
    data = run.to_xarray()
    arrays = {"q": run.q, "v": run.v, "tau": run.tau, "applied": run.applied, "z": run.z, "x": run.x}
    arrays |= {f"{name}_desired": x for name, x in zip("qva", run.desired)}
    arrays |= {f"signal_{name}": x for name, x in run.signals.items()}
    arrays |= {f"measured_{name}": x for name, x in run.measured.items()}
    arrays |= {f"monitor_{name}": m.values for name, m in run.monitors.items()}
    assert set(data.data_vars) == set(arrays)
    for name, x in arrays.items():
        np.testing.assert_array_equal(data[name].values, x)
    np.testing.assert_array_equal(data.t, run.t)
    np.testing.assert_array_equal(data.v.sel(dof="panda_joint3"), run.v[:, 2])
    np.testing.assert_array_equal(data.measured_q.sel(coordinate="panda_joint7"), run.measured["q"][:, 6])
    assert data.monitor_energy.attrs["verdict"] == run.monitors["energy"].verdict
    assert data.monitor_energy.attrs["limit"] == run.monitors["energy"].limit
    assert (data.attrs["robot"], data.attrs["controller"], data.attrs["success"]) == ("panda", "SlotineLi", 1)


def test_a_table_has_a_column_for_each_number(run):
    table = run.to_dataframe()
    data = run.to_xarray()
    assert len(table.columns) == sum(int(np.prod(x.shape[1:])) for x in data.data_vars.values())
    assert len(set(table.columns)) == len(table.columns)
    np.testing.assert_array_equal(table.index, run.t)
    np.testing.assert_array_equal(table["tau.panda_joint2"], run.tau[:, 1])
    np.testing.assert_array_equal(table["z.69"], run.z[:, 69])
    np.testing.assert_array_equal(table["signal_lyapunov"], run.signals["lyapunov"])


def test_joints_with_a_pose(tmp_path):
    robot = models.quadrotor()
    run = gc.simulate(
        robot, lambda t, q, v, z: gc.Command(np.zeros(6)), robot.neutral(), np.zeros(robot.nv), 0.005, 1e-3
    )
    data = run.to_xarray()
    assert data.q.dims == ("t", "coordinate")
    assert "coordinate" not in data.coords  # twelve numbers of a pose have no names of joints
    assert list(data.dof.values) == list(robot.dof_names)
    run.save(tmp_path / "run.npz")
    loaded = gc.Run.load(tmp_path / "run.npz").to_xarray()  # its robot is not known
    assert set(loaded.data_vars) == set(data.data_vars)
    assert "dof" not in loaded.coords
    np.testing.assert_array_equal(loaded.q, run.q)
    assert "v.0" in gc.Run.load(tmp_path / "run.npz").to_dataframe().columns


def test_a_missing_package_is_named(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "xarray", None)
    with pytest.raises(gc.GeomctrlError, match=r"Run.to_xarray needs the optional package xarray: pip install"):
        run.to_xarray()
