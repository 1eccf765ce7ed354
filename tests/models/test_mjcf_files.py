"""Published MJCF files, each against MuJoCo: loaded, or refused with the element and its line.

`make mjcfs` fetches gymnasium, gymnasium-robotics and dm_control, which carry them; a few come with `mujoco`. Files
that are only parts of others, which MuJoCo does not compile alone, are refused in MuJoCo's words.
"""

import re
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from oracles import assert_close, force_scale

from geomctrl import Friction, Plant, interop, models
from geomctrl.errors import ModelError
from geomctrl.models.io.mjcf import IGNORABLE, body_names, joint_names

mujoco = pytest.importorskip("mujoco")

# the result of `make mjcfs`: folder of the packages
FOLDERS = Path(sys.prefix) / "mjcfs", Path(mujoco.__file__).parents[1]
PACKAGES = ("mujoco", "gymnasium", "gymnasium_robotics", "dm_control")


def files():
    """Return (package, name, path) of each file with an element <mujoco>; the packages are not imported."""
    for package in PACKAGES:
        root = next((folder / package for folder in FOLDERS if (folder / package).is_dir()), Path("/nowhere"))
        for path in sorted(root.rglob("*.xml")):
            if re.search(r"<mujoco\b", path.read_text(encoding="utf-8", errors="replace")):
                yield pytest.param(package, path, id=f"{package}/{path.relative_to(root)}")


FILES = list(files())


def compiled(path):
    """Return MuJoCo's model, or None if MuJoCo does not compile the file alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # settings that MuJoCo no longer recommends
        try:
            return mujoco.MjModel.from_xml_path(str(path))
        except ValueError:
            return None


def load(path, ignore=()):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return models.load_mjcf(path, ignore=ignore)


def as_it_is(path):
    """Return (the robot or None, the reason of the refusal)."""
    try:
        return load(path), ""
    except ModelError as error:
        return None, str(error)


def left_out(m, ignored):
    """MuJoCo's model without contacts and other constraints, and without ignored elements that change M."""
    for key in ("dof_armature", "actuator_armature", "tendon_armature"):
        if ignored and hasattr(m, key):
            getattr(m, key)[:] = 0.0
    mujoco.mj_setConst(m, mujoco.MjData(m))  # MuJoCo adds the armature to bodies that only slide
    bits = mujoco.mjtDisableBit
    m.opt.disableflags |= int(bits.mjDSBL_CONTACT) | int(bits.mjDSBL_CONSTRAINT)
    return m


def rate_of_frames(robot, m, q, v):
    """dP/dt v, where MuJoCo's velocity is P v: a free joint's linear part is in world axes, ours in the body's."""
    out = np.zeros(m.nv)
    for joint, qs, vs in zip(robot.joints, robot.q_slices, robot.v_slices):
        if joint.kind == "free":
            at = m.jnt_dofadr[joint_names(m).index(joint.name)]
            out[at : at + 3] = q[qs].reshape(3, 4)[:, :3] @ np.cross(v[vs][:3], v[vs][3:])
    return out


def check_against_mujoco(robot, m, passive):
    """M, bias and poses at random states; damping and springs, if they are read."""
    data, rng = mujoco.MjData(m), np.random.default_rng(0)
    plant = Plant(robot, Friction(robot.damping))
    for _ in range(2):
        mujoco.mj_resetData(m, data)
        mujoco.mj_integratePos(m, data.qpos, rng.normal(size=m.nv), 1.0)
        data.qvel[:] = rng.normal(size=m.nv)
        mujoco.mj_fwdPosition(m, data)
        mujoco.mj_fwdVelocity(m, data)
        M = np.zeros((m.nv, m.nv))
        for column, unit in zip(M, np.eye(m.nv)):  # mj_fullM's arguments differ between versions
            mujoco.mj_mulM(m, data, column, unit)
        q, v = interop.from_mujoco(robot, m, data.qpos, data.qvel)
        P = interop.to_mujoco(robot, m, np.tile(q, (robot.nv, 1)), np.eye(robot.nv))[1].T
        size = force_scale(robot, q, v, 0 * v)
        assert_close(robot.mass_matrix(q), P.T @ M @ P, 1e-10)
        bias = robot.inverse_dynamics(q, v, 0 * v)
        assert_close(bias, P.T @ (data.qfrc_bias + M @ rate_of_frames(robot, m, q, v)), 1e-10, size)
        for i, name in enumerate(body_names(m)):
            assert_close(robot.pose(q, name)[:3, 3], data.xpos[i], 1e-11, 1.0)
        if passive:
            a = plant.acceleration(0.0, q, v, np.zeros(robot.nv))
            theirs = P.T @ data.qfrc_passive
            assert_close(robot.mass_matrix(q) @ a + bias, theirs, 1e-8, size)


@pytest.mark.slow
@pytest.mark.parametrize(("package", "path"), FILES)
def test_a_file_agrees_with_mujoco_or_is_refused_with_the_line(package, path):
    """Load the file, if possible; otherwise load it without the refused elements."""
    m = compiled(path)
    robot, refused = as_it_is(path)
    if m is None or m.nv == 0:
        assert robot is None
        assert refused.startswith(f"{path}: ")
        return
    if robot is None:
        where = (
            r"can not be represented: \w+ of '[^']+' \((line [1-9]\d*|of an included file)|coupling of joint '\w+': "
        )
        assert re.search(where, refused), refused
    if robot is not None and robot.couplings:  # which have their own tests
        robot = None
    check_against_mujoco(robot or load(path, IGNORABLE), left_out(m, ignored=robot is None), passive=robot is not None)


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_what_becomes_of_a_packages_files(package, record_property):
    """Print how many files were loaded unchanged, one line for each package, at the end of the session."""
    paths = [param.values[1] for param in FILES if param.values[0] == package]
    if not paths:
        pytest.skip(f"{package} is not installed: make mjcfs")
    counts, reasons = Counter(), Counter()
    for path in paths:
        m, (robot, refused) = compiled(path), as_it_is(path)
        outcome = "not compiled by MuJoCo alone" if m is None else "without a joint" if m.nv == 0 else "refused"
        counts["loaded" if robot is not None else outcome] += 1
        if outcome == "refused":
            reasons.update(key for key in IGNORABLE if re.search(rf"(: |; ){key} of ", refused))
    said = ", ".join(f"{n} {outcome}" for outcome, n in counts.most_common())
    why = ", ".join(f"{key} {n}" for key, n in reasons.most_common())
    record_property("count", f"{package}: {len(paths)} MJCF files: {said}" + f" ({why})" * bool(why))
    assert sum(counts.values()) == len(paths)
    assert counts["loaded"] or package == "mujoco"
