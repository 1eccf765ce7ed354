"""LLVM text: types, literals and functions."""

from __future__ import annotations

import ctypes
import struct

FLAGS = "contract nsz arcp"  # the only relaxations for the code generator; nan and infinity keep their meaning


def literal(x: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


class Vector:
    """The LLVM types of numbers with `width` lanes, double or float."""

    def __init__(self, width: int, real: str = "double"):
        self.width, self.real, bits = width, real, 64 if real == "double" else 32
        self.type = real if width == 1 else f"<{width} x {real}>"
        self.bool = "i1" if width == 1 else f"<{width} x i1>"
        self.whole = f"i{bits}" if width == 1 else f"<{width} x i{bits}>"
        self.suffix = f"f{bits}" if width == 1 else f"v{width}f{bits}"
        self.mark = "" if real == "double" else "f"  # at the end of a C function's name

    def constant(self, x: float) -> str:
        x = x if self.real == "double" else ctypes.c_float(x).value  # LLVM writes a float as a double
        return literal(x) if self.width == 1 else f"splat ({self.real} {literal(x)})"


class Function:
    """The text of a function under construction. flags: relaxations for its arithmetic."""

    def __init__(self, vector: Vector, flags: str = FLAGS):
        self.vector, self.lines, self.count, self.blocks, self.flags = vector, [], 0, 0, flags

    def let(self, expression: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {expression}")
        return f"%v{self.count}"

    def do(self, statement: str) -> None:
        self.lines.append(f"  {statement}")

    def operation(self, op: str, *args: str, type: str | None = None) -> str:
        return self.let(f"{op} {self.flags} {type or self.vector.type} {', '.join(args)}")

    def call(self, name: str, *args: str) -> str:
        t = self.vector.type
        return self.let(f"call {t} @{name}({', '.join(f'{t} {a}' for a in args)})")

    def address(self, base: str, index: int | str) -> str:
        return self.let(f"getelementptr {self.vector.real}, ptr {base}, i64 {index}")
