"""URDF documents for tests, piece by piece."""

BASE = '<link name="base"/>'


def urdf(*parts, name="r"):
    return f'<robot name="{name}">' + "".join(parts) + "</robot>"


def link(name="tip", mass="1", I="1 0 0 1 0 1", xyz=None, rpy=None):
    origin = "" if xyz is None and rpy is None else f'<origin xyz="{xyz or "0 0 0"}" rpy="{rpy or "0 0 0"}"/>'
    tensor = " ".join(f'{key}="{x}"' for key, x in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), I.split()))
    return f'<link name="{name}"><inertial>{origin}<mass value="{mass}"/><inertia {tensor}/></inertial></link>'


def joint(name="j", kind="continuous", parent="base", child="tip", inside='<axis xyz="0 1 0"/>'):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def one(kind="continuous", inside='<axis xyz="0 1 0"/>', body=None):
    return urdf(BASE, body or link(xyz="0.1 0.2 0.3"), joint(kind=kind, inside=inside))


def gripper(kind="prismatic", offset="0.3"):
    follower = f'<axis xyz="0 0 2"/><mimic joint="lead" multiplier="-1" offset="{offset}"/>'
    return urdf(
        BASE,
        link("f1"),
        link("f2"),
        joint("lead", kind, child="f1"),
        joint("follow", kind, child="f2", inside=follower),
    )
