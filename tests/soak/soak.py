"""Random checks for as long as one likes: URDF files, robots, closed loops, sweeps that are killed. See checks.py.

Each kind of check runs in a process of its own, so that a crash or a hang is a failure like others. Prints failures
with the command that repeats them and, at the end, how often what was seen; exit status 1 if anything failed.

    python tests/soak/soak.py [--minutes 30] [--seed N] [--only NAME] [--count N]
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

TESTS = Path(__file__).resolve().parents[1]
for folder in (TESTS.parent, TESTS.parent / "experiments", TESTS, TESTS / "control", TESTS / "soak"):
    sys.path.insert(0, str(folder))

import checks  # noqa: E402
from lib.script import run_script  # noqa: E402

from geomctrl.tracing.backends import cache  # noqa: E402

LONGEST = 300.0  # s, for one check; longer ones count as hanging
KindName = Literal[*checks.CHECKS]
SHOWN = 10  # failures of a kind, after which it is not run again


def work(name: str, seed: int, count: int, deadline: float, out: Connection) -> None:
    """Run check after check from `seed` on. Before each its seed is sent, and after it (whether it succeeded,
    message).
    """
    for k in range(seed, seed + count):
        if k > seed and time.time() > deadline:
            return
        out.send(k)
        try:
            said = True, checks.checked(name, k)
        except Exception:
            said = False, traceback.format_exc()
        out.send(said)


@dataclass
class Kind:
    """One kind of check: its process, progress and results."""

    name: str
    seed: int  # of the current or next check
    last: int
    deadline: float
    seen: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    since: float = 0.0  # start time of the check; 0 if none runs

    def start(self) -> None:
        self.inbox, out = multiprocessing.Pipe(duplex=False)
        arguments = self.name, self.seed, self.last - self.seed, self.deadline, out
        self.process: BaseProcess = multiprocessing.get_context("fork").Process(target=work, args=arguments)
        self.process.start()
        out.close()

    def heard(self) -> bool:
        """Receive what the process has sent; return whether more can come."""
        try:
            said = self.inbox.recv()
        except EOFError:
            self.process.join()
            if self.since:
                self.failed(f"the process ended with exit code {self.process.exitcode}")
            again = bool(self.since) and self.failures < SHOWN and self.seed + 1 < self.last
            if again and time.time() < self.deadline:
                self.seed, self.since = self.seed + 1, 0.0
                self.start()
                return True
            return False
        if isinstance(said, int):
            self.seed, self.since = said, time.time()
            return True
        right, words = said
        self.since = 0.0
        if right:
            self.seen[words] += 1
        else:
            self.failed(words)
        if self.failures >= SHOWN:
            self.process.terminate()
            print(f"{self.name}: {SHOWN} failures, left alone", flush=True)
        return self.failures < SHOWN

    def failed(self, why: str) -> None:
        self.failures += 1
        repeat = f"python {os.path.relpath(__file__)} --only {self.name} --seed {self.seed} --count 1"
        print(f"FAILED {self.name}, seed {self.seed}: {repeat}\n{why}", flush=True)

    def stop_if_it_hangs(self) -> None:
        if self.since and time.time() - self.since > LONGEST:
            print(f"{self.name}, seed {self.seed}: hangs for {LONGEST:g} s", flush=True)
            self.process.kill()


def soak(minutes: float, seed: int, names: list[str], count: int = sys.maxsize // 2) -> int:
    """Return how many checks failed; failures are printed at once, and the counts at the end."""
    with tempfile.TemporaryDirectory() as folder:  # compiled code for thousands of random robots is not worth storing
        cache._folders = lambda: (Path(folder),)
        return _soak(minutes, seed, names, count)


def _soak(minutes: float, seed: int, names: list[str], count: int) -> int:
    deadline = time.time() + 60.0 * minutes
    kinds = [Kind(name, seed, seed + count, deadline) for name in names]
    for kind in kinds:
        kind.start()
    going = {kind.inbox: kind for kind in kinds}
    try:
        while going:
            for inbox in wait(list(going), timeout=5.0):
                kind = going.pop(inbox)
                if kind.heard():
                    going[kind.inbox] = kind
            for kind in going.values():
                kind.stop_if_it_hangs()
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        for kind in kinds:
            kind.process.terminate()
            kind.process.join()
    for kind in kinds:
        seen = ", ".join(f"{n} {what}" for what, n in kind.seen.most_common())
        print(f"{kind.name}: {kind.seen.total()} right ({seen or 'none'}), {kind.failures} failed")
    return sum(kind.failures for kind in kinds)


def main(
    *, minutes: float = 30.0, seed: int | None = None, only: KindName | None = None, count: int | None = None
) -> None:
    """Run random checks until the time is over.

    Parameters
    ----------
    minutes
        How long.
    seed
        Of the first check of each kind; default the time.
    only
        One kind of check; default all.
    count
        Checks of each kind; default as many as there is time for.
    """
    seed = int(time.time()) if seed is None else seed
    print(f"from seed {seed} on, for {minutes:g} minutes", flush=True)
    kinds = list(checks.CHECKS) if only is None else [only]
    sys.exit(bool(soak(minutes, seed, kinds, sys.maxsize // 2 if count is None else count)))


if __name__ == "__main__":
    run_script(main)
