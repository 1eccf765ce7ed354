"""Refusals name the file and the line, and say what to write instead."""

import contextlib
import copy
import io
import itertools
import math
import os
import pickle
import random
import re
import threading
import time

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special

from geomctrl.tracing import trace
from geomctrl.tracing.untraceable import UntraceableError

EXPRESSIONS = """
{x[0]: 1}[1.0]
LISTED[x[0]]
LISTED[int(x[0] * 1e3)]
f'{x[0]}'
str(x)
'%f' % x[0]
hash(x[0])
bytes(x)
x.tobytes()
set(x)
complex(x[0])
x.astype(np.float32)
x.view(np.int64)
x[0].is_integer()
x[0].as_integer_ratio()
pickle.dumps(x)
np.save('f', x)
np.loadtxt('f')
open('f')
print(x)
eval('x[0]')
next(ITERATOR)
FILE.write('a')
LOCK.acquire()
RNG.normal()
random.random()
time.time()
os.getcwd()
threading.Thread(target=len).start()
np.linalg.eigh(np.outer(x, x))[1]
np.fft.fft(x)
np.unique(x)
np.histogram(x)
x[x > 0]
range(int(x[0]))
np.zeros(int(x[0]))
np.repeat(x, int(x[0]))
x[:int(x[0])]
math.gcd(int(x[0]), 3)
math.gamma(x[0])
np.nextafter(x, 1)
np.polyfit(x, x, 1)
np.errstate(divide='raise').__enter__()
np.seterr(all='raise')
scipy.linalg.expm(np.outer(x, x))
scipy.special.gamma(x)
scipy.optimize.minimize(lambda y: y @ y, x).x
f.__code__
dict.__subclasses__()
int(x[0]) & 1
~int(x[0])
random.random() * x
copy.copy(ITERATOR)
"""
OBJECTS = {"LISTED": [1.0, 2.0, 3.0], "ITERATOR": itertools.count(), "LOCK": threading.Lock(), "FILE": io.StringIO()}
OBJECTS |= {"RNG": np.random.default_rng(0)}
MODULES = [math, os, pickle, random, time, threading, np, scipy, copy]
WORDS = "write|replace|ask|test|call|use|keep|return|copy|convert|create|give|compute|draw|read|pass|do that"
ADVICE = re.compile(rf"\b({WORDS})\b|np\.\w+ ")


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_a_refusal_has_line_and_advice(expression, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {m.__name__: m for m in MODULES} | OBJECTS | {"np": np, "__name__": "of_a_user"}
    exec(compile(f"def f(x):\n\n    return 1.0 * np.asarray({expression})\n", "of_a_user.py", "exec"), space)
    with pytest.raises(UntraceableError) as error, contextlib.redirect_stdout(io.StringIO()) as printed:
        trace(space["f"], 2)
    message = str(error.value)
    assert "of_a_user.py, line 3" in message
    assert ADVICE.search(message.replace("can not be traced", ""))
    assert not printed.getvalue()
    assert not [*tmp_path.iterdir()]
