"""`python -m hostile.worker ROOM NUMBER OF OUT [FIRST]`: every OF-th substitution in a room, a line of JSON each.

A process of its own: a value that kills it, or a call that does not end, is the last one begun.
"""

import faulthandler
import json
import os
import sys

from hostile.calls import substitutions, verdict
from hostile.discovery import public_callables
from hostile.examples import callable_of, examples
from hostile.examples.common import FOLDER

LONGEST = 60.0  # seconds that a refusal may take


def main(room: str, number: str, of: str, out: str, first: str = "0") -> None:
    public = public_callables()
    with open(out, "a", encoding="utf-8") as file:

        def say(*line: object) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()

        at = 0
        os.chdir(FOLDER)  # where a path of any words may point
        for name, example in examples(room).items():
            for argument, what, bad in substitutions(public[callable_of(name)], example):
                at += 1
                if at % int(of) != int(number) or at <= int(first):
                    continue
                say(at, name, argument, what)
                faulthandler.dump_traceback_later(LONGEST, exit=True)
                came, words = verdict(public[callable_of(name)], example, argument, bad)
                faulthandler.cancel_dump_traceback_later()
                say(at, name, argument, what, came, words)
        say("end")


if __name__ == "__main__":
    faulthandler.enable()
    main(*sys.argv[1:])
