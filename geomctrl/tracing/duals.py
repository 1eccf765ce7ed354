"""`Dual`: truncated Taylor series whose coefficients may be symbols, for `kernels.tangents`."""

from __future__ import annotations

from typing import Any


class Dual:
    """a + b t, to second order in t."""

    __slots__ = ("imag", "real")

    def __init__(self, real: Any, imag: Any):
        self.real, self.imag = real, imag

    def __add__(self, other):
        other = _dual(other)
        return Dual(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other):
        other = _dual(other)
        return Dual(self.real - other.real, self.imag - other.imag)

    def __rsub__(self, other):
        return _dual(other) - self

    def __mul__(self, other):
        other = _dual(other)
        return Dual(self.real * other.real, self.imag * other.real + self.real * other.imag)

    def __truediv__(self, other):
        other = _dual(other)
        ratio = self.real / other.real
        return Dual(ratio, (self.imag - ratio * other.imag) / other.real)

    def __rtruediv__(self, other):
        return _dual(other) / self

    def __neg__(self):
        return Dual(-self.real, -self.imag)

    __radd__, __rmul__ = __add__, __mul__


def _dual(x: Any) -> Any:
    return x if isinstance(x, Dual) else Dual(x, 0.0)
