"""When straight-line code is worth making."""

from geomctrl.tracing.backends.machine_code import MAX_OPERATIONS
from geomctrl.tracing.partition import STORE
from geomctrl.tracing.traces import Trace

# Up to here a function compiles in about two seconds and beats the loops: four times at 7 joints, 1.3 to 2 times at 30,
# where the loops' batches come from memory. Longer code is fetched as slowly as it is computed and gains ever less
# (experiments/benchmarks/benchmark_compiler.py).
OPERATIONS = MAX_OPERATIONS
# A trace is given up at so many nodes, of which some turn out not to be needed.
NODES = 2 * OPERATIONS
# A closed loop compiles where its law and monitors have more: users' code is traced without the shortcuts of finite
# numbers, and a loop that compiles in three seconds saves minutes.
LOOP_OPERATIONS = 100_000
# Inputs of a single state lie on the stack, which a thread may have little of.
INPUTS = 8192
LOOPS = b"loops"  # kept in the place of object code for structures over the budget
# A process compiles at once for its first structures, and for others what it has wanted so often: making code for one
# takes as long as the loops take for that many states.
EAGER = 8
CALLS = 50_000


def allows(trace: Trace) -> bool:
    return sum(trace.inputs) <= INPUTS and trace.operations + STORE * len(trace.outputs) <= OPERATIONS
