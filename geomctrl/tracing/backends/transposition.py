"""Transposition between states in C order and lanes, in squares of as many rows and columns as there are lanes."""

from __future__ import annotations


def transposition(label: str, array: str, buffer: str, n: int, start: int, width: int, *, gather: bool) -> list[str]:
    """Blocks `LABEL` to `LABEL.done`: rows %b ... %b + width - 1 of n numbers to buffer[start + k][lane], or back.

    The last columns, fewer than the lanes, are loaded and stored with a mask, so that nothing outside is accessed.
    """
    writer = _Square(label, buffer, start, width, gather)
    whole = n - n % width
    lines = [f"{label}:", *(writer.row(lane, array, n) for lane in range(width))]
    lines.append(f"  br label %{label}.squares" if whole else f"  br label %{label}.rest")
    if whole:
        lines += [
            f"{label}.squares:",
            f"  %{label}.i = phi i64 [0, %{label}], [%{label}.j, %{label}.squares]",
            *writer.square("s", f"%{label}.i", width),
            f"  %{label}.j = add i64 %{label}.i, {width}",
            f"  %{label}.m = icmp slt i64 %{label}.j, {whole}",
            f"  br i1 %{label}.m, label %{label}.squares, label %{label}.rest",
        ]
    rest = writer.square("r", str(whole), n - whole) if n > whole else []
    return [*lines, f"{label}.rest:", *rest, f"  br label %{label}.done"]


def declarations(width: int) -> list[str]:
    t, mask = f"<{width} x double>", f"<{width} x i1>"
    return [
        f"declare {t} @llvm.masked.load.v{width}f64.p0(ptr, i32, {mask}, {t})",
        f"declare void @llvm.masked.store.v{width}f64.p0({t}, ptr, i32, {mask})",
    ]


class _Square:
    def __init__(self, label: str, buffer: str, start: int, width: int, gather: bool):
        self.label, self.buffer, self.start, self.width, self.gather = label, buffer, start, width, gather
        self.type = f"<{width} x double>"

    def row(self, lane: int, array: str, n: int) -> str:
        p = f"%{self.label}.row{lane}"
        product = f"  {p}.b = add i64 %b, {lane}\n  {p}.n = mul i64 {p}.b, {n}"
        return f"{product}\n  {p} = getelementptr double, ptr {array}, i64 {p}.n"

    def square(self, name: str, column: str, columns: int) -> list[str]:
        """Columns `column` ... + columns - 1 of the rows, one square of them."""
        p, t, w = f"%{self.label}.{name}", self.type, self.width
        lines = [f"  {p}.o = add i64 {column}, {self.start}", f"  {p}.at = mul i64 {p}.o, {w}"]
        for k in range(w):
            lines.append(f"  {p}.p{k} = getelementptr double, ptr %{self.label}.row{k}, i64 {column}")
        for k in range(columns):
            lines.append(f"  {p}.k{k} = add i64 {p}.at, {k * w}")
            lines.append(f"  {p}.q{k} = getelementptr double, ptr {self.buffer}, i64 {p}.k{k}")
        mask = "<" + ", ".join(f"i1 {'true' if k < columns else 'false'}" for k in range(w)) + ">"
        if self.gather:
            values = [f"{p}.x{k}" for k in range(w)]
            if columns == w:
                lines += [f"  {x} = load {t}, ptr {p}.p{k}, align 8" for k, x in enumerate(values)]
            else:
                load = f"call {t} @llvm.masked.load.v{w}f64.p0(ptr"
                lines += [
                    f"  {x} = {load} {p}.p{k}, i32 8, <{w} x i1> {mask}, {t} poison)" for k, x in enumerate(values)
                ]
            turned = self.turned(p, values, lines)
            return [*lines, *(f"  store {t} {turned[k]}, ptr {p}.q{k}, align 8" for k in range(columns))]
        lines += [f"  {p}.x{k} = load {t}, ptr {p}.q{k}, align 8" for k in range(columns)]
        turned = self.turned(p, [f"{p}.x{k}" if k < columns else "poison" for k in range(w)], lines)
        if columns == w:
            return [*lines, *(f"  store {t} {x}, ptr {p}.p{k}, align 8" for k, x in enumerate(turned))]
        store = f"call void @llvm.masked.store.v{w}f64.p0({t}"
        return [*lines, *(f"  {store} {x}, ptr {p}.p{k}, i32 8, <{w} x i1> {mask})" for k, x in enumerate(turned))]

    def turned(self, p: str, rows: list[str], lines: list[str]) -> list[str]:
        """The transposed square, by exchanging increasingly large blocks of neighbouring rows."""
        rows, w, t, step = list(rows), self.width, self.type, 1
        while step < w:
            kept = [j if not j & step else w + j - step for j in range(w)]
            moved = [j + step if not j & step else w + j for j in range(w)]
            for a in (k for k in range(w) if not k & step):
                x, y = rows[a], rows[a + step]
                for row, lanes in ((a, kept), (a + step, moved)):
                    mask = ", ".join(f"i32 {j}" for j in lanes)
                    rows[row] = f"{p}.t{step}.{row}"
                    lines.append(f"  {rows[row]} = shufflevector {t} {x}, {t} {y}, <{w} x i32> <{mask}>")
            step *= 2
        return rows
