"""Copies of functions with other globals and cells."""

from types import CellType

from geomctrl.tracing.rebinding import empty_cells, rebind

OFFSET = 1


def outer(gain):
    def law(x, bias=2, *, sign=1):
        return sign * (gain * x + bias + OFFSET)

    return law


def test_a_copy_looks_up_its_names_elsewhere_and_the_original_stays():
    law = outer(10)
    law.note = "kept"
    elsewhere = rebind(law, {"OFFSET": 100})
    assert elsewhere(1, sign=-1) == -112
    assert elsewhere(1) == 112
    other = rebind(law, closure=(CellType(20),))
    assert other(1) == 23
    assert law(1) == 13
    assert (other.__name__, other.__qualname__, other.__module__) == (law.__name__, law.__qualname__, law.__module__)
    assert other.note == "kept"
    assert other.__kwdefaults__ == law.__kwdefaults__
    other.note, other.__kwdefaults__["sign"] = "changed", -1
    assert law.note == "kept"
    assert law(1) == 13


def test_scope_and_cells_may_be_filled_after_the_copy_is_made():
    scope, cells = {}, empty_cells(outer(10))
    copy = rebind(outer(10), scope, cells)
    scope["OFFSET"], cells[0].cell_contents = 5, 1
    assert copy(1) == 8
