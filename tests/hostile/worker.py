"""`python -m hostile.worker` reads lines [group, number, of, out, first] and tries every of-th bad value of a group.

It writes a line of JSON for each call to the file `out`, then "done" to its output. It is a process of its own: if a
value kills it, or a call does not end, that call is the last one of the file.
"""

import faulthandler
import functools
import json
import os

from hostile.calls import substitutions, verdict
from hostile.discovery import public_callables
from hostile.examples import callable_of, examples
from hostile.examples.common import FOLDER

LONGEST = 60.0  # seconds that a refusal may take

public = functools.cache(public_callables)


def part(group: str, number: int, of: int, out: str, first: int) -> None:
    with open(out, "a", encoding="utf-8") as file:

        def say(*line: object) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()

        at = 0
        for name, example in examples(group).items():
            for argument, what, bad in substitutions(public()[callable_of(name)], example):
                at += 1
                if at % of != number or at <= first:
                    continue
                say(at, name, argument, what)
                faulthandler.dump_traceback_later(LONGEST, exit=True)
                came, words = verdict(public()[callable_of(name)], example, argument, bad)
                faulthandler.cancel_dump_traceback_later()
                say(at, name, argument, what, came, words)


def main() -> None:
    asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the called function may read and print
    os.dup2(2, 1)
    os.chdir(FOLDER)  # folder for paths of any text
    for line in asked:
        part(*json.loads(line))
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    faulthandler.enable()
    main()
