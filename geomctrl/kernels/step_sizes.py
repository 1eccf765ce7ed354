"""How long the next step may be: the numbers of the rule, for steps in Python and in compiled code.

h becomes h min(max(SAFETY e^(3/4 PI_GAIN - 1/order) e_before^PI_GAIN, SHRINK), GROW), e the error of the step, 1 where
it is just good enough, e_before that of the step before. After an error above 1 it becomes h SAFETY at most, and does
not grow with the next step.
"""

SAFETY, SHRINK, GROW, PI_GAIN = 0.9, 0.2, 5.0, 0.04
LEAST_ERROR, LEAST_BEFORE = 1e-10, 1e-4  # what e and e_before count as at least; e_before of a first step
NEARLY = 1.01  # a step that reaches the end when so much longer is made to end there
ULPS = 10.0  # of the time, below which no step goes
