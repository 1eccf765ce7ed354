"""Check what a built wheel and sdist hold: sources, pages and types of every package, and nothing else at the top."""

import sys
import tarfile
import zipfile
from pathlib import Path

SUFFIXES = (".py", ".pyi", ".typed", ".c", ".html", ".css", ".js", ".txt", ".mplstyle")
BESIDE = ("models", "controllers")  # in the repository; inside geomctrl in a wheel


def sources() -> dict[str, str]:
    """Every file of the package: its path in the wheel, and in the sdist, which is laid out as the repository."""
    files = [p for folder in ("geomctrl", *BESIDE) for p in Path(folder).rglob("*") if p.suffix in SUFFIXES]
    return {f"geomctrl/{p.as_posix()}" if p.parts[0] in BESIDE else p.as_posix(): p.as_posix() for p in files}


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
