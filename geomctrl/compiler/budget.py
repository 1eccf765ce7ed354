"""When straight-line code is worth making."""

# Up to here a function compiles in about two seconds and beats the loops; longer code no longer fits the processor's
# instruction cache.
OPERATIONS = 20_000
LOOPS = b"loops"  # kept in the place of object code for structures over the budget
# A process compiles at once for its first structures, and for others what it has wanted so often: making code for one
# takes as long as the loops take for that many states.
EAGER = 8
CALLS = 50_000
