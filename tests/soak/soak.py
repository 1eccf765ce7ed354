"""Random checks for as long as one likes: robots, closed loops, sweeps that are killed, logs, pages. See checks.py.

Each kind of check runs in a process of its own with at most `ADDRESS_SPACE`, so that a crash, a hang or too much memory
is a failure like others, and so is memory that grows. Prints failures with the command that repeats them and, at the
end, how often each result was seen and the memory of the process; exit status 1 if anything failed.

    python tests/soak/soak.py [--minutes 30] [--seed N] [--only NAME] [--count N]
"""

from __future__ import annotations

import multiprocessing
import os
import resource
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

LONGEST = 300.0  # s of processor time for one check; longer ones count as hanging
LONGEST_WAIT = 1800.0  # s without progress, likewise: on a busy machine a check may take any time
PROGRESS = 0.1  # s of processor time that show that a check does not wait
KindName = Literal[*checks.CHECKS]
SHOWN = 10  # failures of a kind, after which it is not run again
ADDRESS_SPACE = 8 << 30  # bytes, of a process
MIN_CHECKS = 40  # of a kind before its memory is judged
MAX_GROWTH, MAX_EXTRA = 1.2, 50.0  # of the largest memory in the last quarter over that in the second: factor, MB


def memory() -> float:
    """What this process has in memory now, in MB; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return 0.0


def processor_time(pid: int) -> float:
    """Seconds of processor time of a process and of its ended children; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def work(name: str, seed: int, count: int, deadline: float, out: Connection) -> None:
    """Run check after check from `seed` on. Before each its seed is sent, and after it (whether it succeeded, message,
    memory).
    """
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for k in range(seed, seed + count):
        if k > seed and time.time() > deadline:
            return
        out.send(k)
        try:
            result = True, checks.checked(name, k)
        except Exception:
            result = False, traceback.format_exc()
        out.send((*result, memory()))


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
    used: float = 0.0  # processor time of the process at that time [s]
    moved: tuple[float, float] = 0.0, 0.0  # time of the last progress, and processor time of the check then [s]
    killed: bool = False
    memory: list[float] = field(default_factory=list)  # after each check of this process [MB]

    def start(self) -> None:
        self.inbox, out = multiprocessing.Pipe(duplex=False)
        arguments = self.name, self.seed, self.last - self.seed, self.deadline, out
        self.process: BaseProcess = multiprocessing.get_context("fork").Process(target=work, args=arguments)
        self.process.start()
        self.memory, self.killed = [], False
        out.close()

    def receive(self) -> bool:
        """Take what the process has sent; whether there is more to come."""
        try:
            message = self.inbox.recv()
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
        if isinstance(message, int):
            self.seed, self.since, self.used = message, time.time(), processor_time(self.process.pid or 0)
            self.moved = self.since, 0.0
            return True
        right, text, used = message
        self.since = 0.0
        self.memory.append(used)
        if right:
            self.seen[text] += 1
        else:
            self.failed(text)
        if self.failures >= SHOWN:
            self.process.terminate()
            print(f"{self.name}: {SHOWN} failures, left alone", flush=True)
        return self.failures < SHOWN

    def failed(self, why: str) -> None:
        self.failures += 1
        repeat = f"python {os.path.relpath(__file__)} --only {self.name} --seed {self.seed} --count 1"
        print(f"FAILED {self.name}, seed {self.seed}: {repeat}\n{why}", flush=True)

    def judge_memory(self) -> str:
        """Fail if memory has grown; the text for the last line."""
        if len(self.memory) < MIN_CHECKS:
            return ""
        quarter = len(self.memory) // 4
        before, after = max(self.memory[quarter : 2 * quarter]), max(self.memory[-quarter:])
        if after > MAX_GROWTH * before + MAX_EXTRA:
            self.failures += 1
            print(f"FAILED {self.name}: memory grows from {before:.0f} MB to {after:.0f} MB", flush=True)
        return f", memory {before:.0f} to {after:.0f} MB"

    def stop_if_it_hangs(self) -> None:
        if not self.since or self.killed:
            return
        now, used = time.time(), processor_time(self.process.pid or 0) - self.used
        if used > self.moved[1] + PROGRESS:
            self.moved = now, used
        if used > LONGEST or now - self.moved[0] > LONGEST_WAIT:
            waited = now - self.since
            print(f"{self.name}, seed {self.seed}: hangs, {used:.0f} s of processor time in {waited:.0f} s", flush=True)
            self.killed = True
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
                if kind.receive():
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
        seen, used = ", ".join(f"{n} {text}" for text, n in kind.seen.most_common()), kind.judge_memory()
        print(f"{kind.name}: {kind.seen.total()} right ({seen or 'none'}){used}, {kind.failures} failed")
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
