"""Lay the sources out as in a wheel, for tools that read files and import nothing: pyright and import-linter.

    python .ci/tree.py FOLDER [COMMAND ...]

copies geomctrl/, and models/ and controllers/ into it, below FOLDER, with pyproject.toml beside, then runs the command
there. What it prints names the repository's own files.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BESIDE = ("models", "controllers")
IGNORED = shutil.ignore_patterns("__pycache__", "*.egg-info")


def lay_out(folder: Path) -> None:
    """Copy the packages into a folder, from which older copies are removed."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "geomctrl", folder / "geomctrl", ignore=IGNORED)
    for name in BESIDE:
        shutil.copytree(ROOT / name, folder / "geomctrl" / name, ignore=IGNORED)
    shutil.copy(ROOT / "pyproject.toml", folder)


def own_paths(text: str, folder: Path) -> str:
    """Return the text with paths of the repository in the place of those of its copy."""
    for name in BESIDE:
        text = text.replace(str(folder / "geomctrl" / name), str(ROOT / name))
    return text.replace(str(folder), str(ROOT))


def main(place: str, *command: str) -> int:
    folder = Path(place).resolve()
    lay_out(folder)
    if not command:
        return 0
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(own_paths(done.stdout, folder), end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
