"""Check what a built wheel and sdist hold: sources, data and types of every package, and nothing else at the top."""

import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

SUFFIXES = (".py", ".pyi", ".typed", ".html", ".mplstyle")


def sources() -> dict[str, str]:
    """Every file of the packages: its path in the wheel, and in the repository and the sdist.

    From the folders, not from pyproject's list of packages: that list is what is checked.
    """
    mapping = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-dir"]
    places = {}
    for package, folder in mapping.items():
        inside = [p for p in Path(folder).rglob("*") if p.suffix in SUFFIXES]
        data = list(Path(folder, "data").glob("*"))
        for path in [p for p in inside + data if p.is_file()]:
            places[f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}"] = path.as_posix()
    return {wheel: path for wheel, path in places.items() if not linked(Path(path))}


def linked(path: Path) -> bool:
    return any(p.is_symlink() for p in path.parents)


def main(dist: str) -> None:
    (wheel,), (sdist,) = list(Path(dist).glob("*.whl")), list(Path(dist).glob("*.tar.gz"))
    expected = sources()
    with zipfile.ZipFile(wheel) as archive:
        names = {n for n in archive.namelist() if not n.endswith("/")}
    content = {n for n in names if ".dist-info/" not in n}
    missing, extra = expected.keys() - content, content - expected.keys()
    assert not missing, f"{wheel.name} lacks {sorted(missing)}"
    assert not extra, f"{wheel.name} has what it should not: {sorted(extra)}"
    for path in ("licenses/LICENSE", "entry_points.txt", "METADATA"):
        assert any(n.endswith(".dist-info/" + path) for n in names), f"{wheel.name} lacks {path}"
    with tarfile.open(sdist) as archive:
        members = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile() or m.issym()}
    lacking = set(expected.values()) - members
    assert not lacking, f"{sdist.name} lacks {sorted(lacking)}"
    print(f"{wheel.name}: {len(content)} files; {sdist.name}: {len(members)} files")


if __name__ == "__main__":
    main(sys.argv[1])
