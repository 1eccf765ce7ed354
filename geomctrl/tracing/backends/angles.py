"""Reduction of angles of any size modulo 2 pi, as LLVM code for processors without a math library."""

from __future__ import annotations

from fractions import Fraction

from .ir import literal

BITS = 1152  # bits of 2 / pi: up to the exponent of the largest double, and 128 more
UNIT = 60  # `reduced` counts in units of 2^-UNIT of a quarter turn


def reduced() -> str:
    """`double @reduced(double x)`: x modulo 2 pi, between -pi and pi, to an ulp of pi, for |x| > 1; nan for infinity.

    Payne and Hanek: for x = m 2^e, bits of 2 / pi whose products with m 2^e are multiples of 4 quarter turns are
    skipped. With 128 of the following bits the error is 2^-73 of a quarter turn.
    """
    pi = _pi(BITS + 64)
    two_over_pi = (1 << (2 * BITS + 65)) // pi
    digits = [0, *((two_over_pi >> k) & (2**64 - 1) for k in range(BITS - 64, -1, -64))]
    quarter, rest = _sum(Fraction(pi, 1 << (BITS + 65 + UNIT)))
    return f"""@two_over_pi = internal constant [{len(digits)} x i64] [{", ".join(f"i64 {w}" for w in digits)}]
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare double @llvm.fma.f64(double, double, double)
define internal double @reduced(double %x) noinline cold nounwind {{
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %exponent = and i64 %shifted, 2047
  %after = add i64 %exponent, -1013
  %inside = icmp sgt i64 %after, 0
  %first = select i1 %inside, i64 %after, i64 0
  %word = lshr i64 %first, 6
  %p0 = getelementptr i64, ptr @two_over_pi, i64 %word
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %w0 = load i64, ptr %p0
  %w1 = load i64, ptr %p1
  %w2 = load i64, ptr %p2
  %high = call i64 @llvm.fshl.i64(i64 %w0, i64 %w1, i64 %first)
  %low = call i64 @llvm.fshl.i64(i64 %w1, i64 %w2, i64 %first)
  %fraction = and i64 %bits, {2**52 - 1}
  %m = or i64 %fraction, {2**52}
  %m128 = zext i64 %m to i128
  %low128 = zext i64 %low to i128
  %product = mul i128 %m128, %low128
  %carried = lshr i128 %product, 64
  %carry = trunc i128 %carried to i64
  %above = mul i64 %m, %high
  %turn = add i64 %above, %carry
  %units = ashr i64 %turn, {62 - UNIT}
  %a = sitofp i64 %units to double
  %back = fptosi double %a to i64
  %left = sub i64 %units, %back
  %b = sitofp i64 %left to double
  %y0 = fmul double %b, {literal(quarter)}
  %y1 = call double @llvm.fma.f64(double %a, double {literal(rest)}, double %y0)
  %y2 = call double @llvm.fma.f64(double %a, double {literal(quarter)}, double %y1)
  %minus = fneg double %y2
  %negative = fcmp olt double %x, 0.0
  %y = select i1 %negative, double %minus, double %y2
  %nan = fsub double %x, %x
  %result = fadd double %y, %nan
  ret double %result
}}"""


def _pi(bits: int) -> int:
    """pi 2^bits, rounded down, by Machin's formula."""

    def arctangent(n: int) -> int:
        """arctan(1 / n) with 32 further bits."""
        total, power, k = 0, (1 << (bits + 32)) // n, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power, k = power // n**2, k + 2
        return total

    return (16 * arctangent(5) - 4 * arctangent(239)) >> 32


def _sum(x: Fraction) -> tuple[float, float]:
    """x as a sum of two doubles."""
    return float(x), float(x - Fraction(float(x)))
