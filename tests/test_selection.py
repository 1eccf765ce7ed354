"""The tests that `make test` leaves to `make test-all`."""

from pathlib import Path

TESTS = """
import pytest

@pytest.mark.quick(3)
@pytest.mark.parametrize("k", range(8))
def test_many(k):
    print("many", k)

@pytest.mark.quick(3)
@pytest.mark.parametrize("k", range(2))
def test_few(k):
    print("few", k)

class TestOthers:
    @pytest.mark.slow
    def test_long(self):
        print("long")

    def test_short(self):
        print("short")
"""


def test_quick_keeps_parameter_sets_that_are_evenly_spaced(pytester):
    pytester.makeconftest((Path(__file__).parent / "conftest.py").read_text())
    pytester.makeini("[pytest]\nmarkers =\n    slow\n    quick(n)")
    pytester.makepyfile(TESTS)
    options = "-q", "-s"
    result = pytester.runpytest(*options, "-m", "not slow")
    result.assert_outcomes(passed=6, deselected=6)
    text = result.stdout.str().replace(".", "")
    assert [f"many {k}" for k in range(8) if f"many {k}" in text] == ["many 0", "many 2", "many 5"]
    assert "few 0" in text
    assert "few 1" in text
    pytester.runpytest(*options).assert_outcomes(passed=12)
