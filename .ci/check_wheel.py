"""Check what a built wheel and sdist hold: every source of the four packages, and nothing else at the top."""

import sys
import tarfile
import zipfile
from pathlib import Path

PACKAGES = {
    "geomctrl": "geomctrl",
    "geomctrl/identification": "geomctrl/identification",
    "geomctrl/models": "models",
    "geomctrl/controllers": "controllers",
}


def expected() -> set[str]:
    files = {"geomctrl/py.typed"}
    for package, folder in PACKAGES.items():
        files |= {f"{package}/{path.name}" for path in Path(folder).glob("*.py")}
    files |= {f"geomctrl/models/data/{path.name}" for path in Path("models/data").glob("*") if path.is_file()}
    return files


def main(dist: str) -> None:
    (wheel,), (sdist,) = list(Path(dist).glob("*.whl")), list(Path(dist).glob("*.tar.gz"))
    with zipfile.ZipFile(wheel) as archive:
        names = {n for n in archive.namelist() if not n.endswith("/")}
    content = {n for n in names if ".dist-info/" not in n}
    missing, extra = expected() - content, content - expected()
    assert not missing, f"{wheel.name} lacks {sorted(missing)}"
    assert not extra, f"{wheel.name} has what it should not: {sorted(extra)}"
    for path in ("licenses/LICENSE", "entry_points.txt", "METADATA"):
        assert any(n.endswith(".dist-info/" + path) for n in names), f"{wheel.name} lacks {path}"
    with tarfile.open(sdist) as archive:
        members = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile() or m.issym()}
    lacking = {
        f"{PACKAGES[p]}/{Path(n).name}" for n in expected() for p in [str(Path(n).parent)] if p in PACKAGES
    } - members
    assert not lacking, f"{sdist.name} lacks {sorted(lacking)}"
    print(f"{wheel.name}: {len(content)} files; {sdist.name}: {len(members)} files")


if __name__ == "__main__":
    main(sys.argv[1])
