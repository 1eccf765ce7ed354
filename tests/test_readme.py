"""The README's Python runs, block after block, and does what it says."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_python_in_the_readme_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    space: dict = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), space)
    said = capsys.readouterr().out
    assert "V does not change as promised" in said
    assert "lyapunov" in said
    assert said.count("VIOLATED") == 0
    assert space["run"].ok
