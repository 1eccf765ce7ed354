"""Coefficients of the sine and cosine that machine code and numba's kernels share.

Minimax polynomials on [-pi/4, pi/4], and pi/2 as a sum of three numbers for the argument reduction of Cody and Waite.
"""

SINE = (
    *(-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04),
    *(2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10),
)
COSINE = (
    *(4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05),
    *(-2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11),
)
HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)  # a sum, each 33 bits
REDUCIBLE = 1e5  # largest |x| for which `reduced_sin_cos` reduces the argument exactly enough
