"""Print the dependencies that pyproject.toml declares, at the lowest versions that it allows, as requirements."""

import re
import tomllib
from pathlib import Path


def lowest(requirement: str) -> str:
    """name==1.2 for name>=1.2; with extras, bounds from above and markers left out."""
    name, version = re.match(r"([\w-]+)(?:\[[\w,-]+\])?\s*>=\s*([\w.]+)", requirement).groups()
    return f"{name}=={version}"


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    print(*map(lowest, project["dependencies"]), sep="\n")
