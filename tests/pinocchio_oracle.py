"""Pinocchio as an oracle for our robots, joint by joint of the same name, and where real URDFs are found."""

import sysconfig
from pathlib import Path

import numpy as np
import pytest


def robot_files():
    """All URDFs of example-robot-data, if it is installed."""
    return sorted(_data().rglob("*.urdf"))


def robot_file(path):
    """One of them; the test is skipped if it is not there."""
    file = _data() / path
    if not file.is_file():
        pytest.skip(f"example-robot-data is not installed (no {path})")
    return file


def _data():
    return Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"


def pinocchio_terms(robot, model, q):
    """(M, g, poses of bodies by name) from Pinocchio at our configuration q, in our coordinates.

    Pinocchio orders children by name, gives a continuous joint (cos, sin), and a free joint (position, quaternion)
    and the velocity (linear, angular).
    """
    import pinocchio as pin

    data, x = model.createData(), pin.neutral(model)
    index = np.empty(robot.nv, dtype=int)
    for joint, qs, vs in zip(robot.joints, robot.q_slices, robot.v_slices):
        j = model.getJointId(joint.name)
        assert j < model.njoints, joint.name
        k, v = model.idx_qs[j], model.idx_vs[j]
        if joint.kind == "free":
            pose = q[qs].reshape(3, 4)
            x[k : k + 3], x[k + 3 : k + 7] = pose[:, 3], pin.Quaternion(np.ascontiguousarray(pose[:, :3])).coeffs()
            index[vs] = [v + 3, v + 4, v + 5, v, v + 1, v + 2]
        else:
            x[k : k + model.nqs[j]] = (np.cos(q[qs][0]), np.sin(q[qs][0])) if model.nqs[j] == 2 else q[qs]
            index[vs] = v
    assert model.nv == robot.nv
    model.gravity.linear = robot.gravity
    M = np.triu(pin.crba(model, data, x))
    g = pin.computeGeneralizedGravity(model, data, x)
    pin.framesForwardKinematics(model, data, x)
    poses = {f.name: data.oMf[i].homogeneous for i, f in enumerate(model.frames) if f.type == pin.FrameType.BODY}
    return (M + np.triu(M, 1).T)[np.ix_(index, index)], g[index], poses
