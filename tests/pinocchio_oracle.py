"""Pinocchio as reference for our robots, with joints matched by name; and where real URDFs are found."""

import sysconfig
from pathlib import Path

import numpy as np
import pytest


def robot_files():
    """All URDFs of example-robot-data, if it is installed."""
    return sorted(_data().rglob("*.urdf"))


def robot_file(path):
    """Return one of them; the test is skipped if it does not exist."""
    file = _data() / path
    if not file.is_file():
        pytest.skip(f"example-robot-data is not installed (no {path})")
    return file


def _data():
    return Path(sysconfig.get_path("purelib")) / "cmeel.prefix/share/example-robot-data/robots"


def pinocchio_state(robot, model, q):
    """(Pinocchio's configuration, index) of ours at q: v_pinocchio[index] is our v, for v, torques and matrix rows.

    Pinocchio orders children by name, gives a continuous joint (cos, sin), and a free joint (position, quaternion)
    and the velocity (linear, angular).
    """
    import pinocchio as pin

    x, index = pin.neutral(model), np.empty(robot.nv, dtype=int)
    assert model.nv == robot.nv
    model.gravity.linear = robot.gravity
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
    return x, index


def pinocchio_terms(robot, model, q):
    """Return (M, g, poses of bodies by name) from Pinocchio at our configuration q, in our coordinates."""
    import pinocchio as pin

    data = model.createData()
    x, index = pinocchio_state(robot, model, q)
    M = np.triu(pin.crba(model, data, x))
    g = pin.computeGeneralizedGravity(model, data, x)
    pin.framesForwardKinematics(model, data, x)
    poses = {f.name: data.oMf[i].homogeneous for i, f in enumerate(model.frames) if f.type == pin.FrameType.BODY}
    return (M + np.triu(M, 1).T)[np.ix_(index, index)], g[index], poses


def assert_dynamics(robot, model, q, v, a, rtol=1e-9):
    """Compare inverse and forward dynamics, bias, C, regressor and body Jacobians of one state with Pinocchio's."""
    import pinocchio as pin

    data, (x, index) = model.createData(), pinocchio_state(robot, model, q)
    pv, pa = np.empty(robot.nv), np.empty(robot.nv)
    pv[index], pa[index] = v, a

    def agree(ours, theirs, what, scale=0.0):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * max(np.abs(theirs).max(), scale), err_msg=what)

    tau = robot.inverse_dynamics(q, v, a)
    agree(tau, pin.rnea(model, data, x, pv, pa)[index], "inverse dynamics")
    agree(robot.inverse_dynamics(q, v, 0 * a), pin.nonLinearEffects(model, data, x, pv)[index], "bias")
    C = pin.computeCoriolisMatrix(model, data, x, pv)[np.ix_(index, index)]
    agree(robot.coriolis_matrix(q, v, "christoffel"), C, "C", np.abs(robot.mass_matrix(q)).max() * np.abs(v).max())
    ptau = np.empty(robot.nv)
    ptau[index] = tau
    agree(robot.forward_dynamics(q, v, tau), pin.aba(model, data, x, pv, ptau)[index], "forward dynamics", 1.0)
    Y = pin.computeJointTorqueRegressor(model, data, x, pv, pa).reshape(robot.nv, -1, 10)[index]  # a row is a vector
    order = [model.getJointId(str(j.name)) - 1 for j in robot.joints]
    agree(robot.regressor(q, v, a).reshape(robot.nv, -1, 10), Y[:, order], "regressor")
    pin.computeJointJacobians(model, data, x)
    for name, joint in list(zip(robot.body_names, robot.joints))[-3:]:
        J = pin.getJointJacobian(model, data, model.getJointId(str(joint.name)), pin.LOCAL).reshape(6, -1)
        agree(robot.jacobian(q, name), J[[3, 4, 5, 0, 1, 2]][:, index], f"Jacobian of {name}")
