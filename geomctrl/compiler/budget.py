"""When straight-line code is worth making."""

# Measured (experiments/benchmarks/benchmark_compiler.py): up to here a function is compiled in about two seconds and
# beats the loops; the code of longer ones no longer fits the processor's instruction cache.
OPERATIONS = 20_000
LOOPS = b"loops"  # kept in the place of object code for structures over the budget
