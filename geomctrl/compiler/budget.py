"""When straight-line code is worth making."""

from .tracing import Trace

# Up to here a function compiles in about two seconds and beats the loops; longer code no longer fits the processor's
# instruction cache.
OPERATIONS = 20_000
# Inputs and outputs of all lanes lie on the stack, which a thread may have little of: 128 KiB at 8 lanes. The loops are
# as fast where there are more: for the terms and the regressor of 30 joints they are.
NUMBERS = 2048
LOOPS = b"loops"  # kept in the place of object code for structures over the budget
# A process compiles at once for its first structures, and for others what it has wanted so often: making code for one
# takes as long as the loops take for that many states.
EAGER = 8
CALLS = 50_000


def allows(trace: Trace) -> bool:
    numbers = sum(trace.inputs) + len(trace.outputs)
    return numbers <= NUMBERS and trace.operations <= OPERATIONS
