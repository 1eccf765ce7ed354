"""`Session`: a setting with its history and pins, and one thread that computes the outcome of the latest setting."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.tracing.code_identity import raised_in

from .controls import Controls, Settings
from .edges import Edge, Region, find_edge, map_region
from .outcomes import LateError, Outcome, outcome_of
from .saving import code_of, save

MAX_PINS = 4
AT_REST = 0.3  # s without a change after which no slider is being dragged
SAME_DRAG = 1.0  # s: later changes of the same control belong to one step of the history
MIN_INTERVAL = 0.02  # s between outcomes that are shown while newer settings wait
MAX_SILENCE = 1.0  # s without an outcome after which a run in Python is completed although newer settings wait


class Pin(NamedTuple):
    """A setting that was kept for comparison, and its outcome."""

    settings: Settings
    outcome: Outcome


class Session:
    """The state of tuning. All methods may be called from any thread.

    `show` is called by the computing thread with each outcome that is not late, with the error if an object refuses the
    setting, and with the message of a search. While a slider is dragged, monitors beyond their limits are
    "checking"; once it rests, the outcome is computed again and their verdicts are confirmed.
    """

    def __init__(self, controls: Controls, show: Callable[[Outcome | Exception | str], None] = lambda _: None):
        self.controls, self.show = controls, show
        self.settings = controls.settings
        self.pins: list[Pin] = []
        self.edges: dict[str, Edge] = {}
        self.region: Region | None = None
        self.outcome: Outcome | None = None
        self._settings_of_outcome: Settings = {}
        self.dropped = 0  # outcomes that were not shown, because newer settings waited
        self.latencies: list[float] = []  # s from a change to its outcome, before the browser draws it
        self._history: list[Settings] = []
        self._dragged: dict[str, float] = {}  # when each control was last changed, since the last apply or undo
        self._last_change = 0.0
        self._changed_at: float | None = None
        self._shown_at = 0.0
        self._checking = False  # whether the verdicts of the outcome wait for confirmation
        self._lock, self._wanted, self._idle = threading.Lock(), threading.Event(), threading.Event()
        self._jobs: list[Callable[[], None]] = []
        self._closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Start the thread that computes, with the first setting."""
        self._thread.start()
        self._want()

    def close(self) -> None:
        self._closed = True
        self._wanted.set()

    def wait(self, seconds: float = 60.0) -> bool:
        """Wait until the latest setting is computed, and all searches are done."""
        return self._idle.wait(seconds)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was changed for a moment, so that sliders may be moved without a fight with the user."""
        return self._seconds_to_rest() <= 0.0

    def _seconds_to_rest(self) -> float:
        return self._last_change + AT_REST - time.perf_counter()

    # --- settings ----------------------------------------------------------------------------------------------------

    def change(self, key: str, value: float) -> None:
        """Set one control. Changes of the same control within a second are one step of the history."""
        self.controls[key]
        with self._lock:
            now = time.perf_counter()
            if self.settings[key] == value:
                return
            if now - self._dragged.get(key, -math.inf) > SAME_DRAG:
                self._history.append(dict(self.settings))
            self._dragged[key] = self._last_change = now
            self.settings = {**self.settings, key: float(value)}
        self._want()

    def apply(self, settings: Mapping[str, float]) -> None:
        """Set several controls in one step of the history."""
        for key in settings:
            self.controls[key]
        with self._lock:
            self._history.append(dict(self.settings))
            self._dragged, self._last_change = {}, 0.0
            self.settings = {**self.settings, **settings}
        self._want()

    def undo(self) -> bool:
        """Return to the setting before the last change; False if there is none."""
        with self._lock:
            if not self._history:
                return False
            self.settings, self._dragged, self._last_change = self._history.pop(), {}, 0.0
        self._want()
        return True

    def set_range(self, key: str, limits: tuple[float, float]) -> None:
        """Set the range of a control. Its edge, which was searched for in the old one, is forgotten."""
        self.controls.set_range(key, limits)
        self.edges.pop(key, None)

    def pin(self) -> None:
        """Keep the shown setting and its outcome for comparison. The oldest of more than four is dropped."""
        if self.outcome is not None:
            self.pins = [*self.pins, Pin(self._settings_of_outcome, self.outcome)][-MAX_PINS:]

    def code(self) -> str:
        """Python code that repeats the shown run."""
        if self.outcome is None:
            return ""
        return code_of(self.controls, self.outcome.loop, self._settings_of_outcome, self.outcome)

    def save(self, kind: str, folder: Path, key: str = "") -> Path:
        """Save the shown setting as one of `saving.KINDS`; key: the control of a sweep."""
        if self.outcome is None:
            raise ArgumentError("save: expected a run, which starts when the page opens, got none yet")
        outcome, settings = self.outcome, self._settings_of_outcome
        if outcome.checking:
            outcome = outcome_of(self.controls.loop(settings))
        return save(self.controls, outcome, settings, kind, folder, key)

    # --- work of the thread ------------------------------------------------------------------------------------------

    def search_edge(self, key: str) -> None:
        """Find the edge of a control; a change of the setting ends the search."""
        self.controls[key]

        def job() -> None:
            edge = find_edge(self.controls, self.settings, key, self._wanted_again)
            if edge is not None:
                self.edges[key] = edge
            self.show(f"{key}: the search ended with the change" if edge is None else str(edge))

        self._add(job)

    def search_region(self, x: str, y: str) -> None:
        """Compute the map over two controls; a change of the setting ends it. Raises ArgumentError if they are one."""
        if self.controls[x] is self.controls[y]:
            raise ArgumentError(f"y: expected another control than x, got {y} twice")

        def job() -> None:
            region = map_region(self.controls, self.settings, x, y, self._wanted_again)
            if region is not None:
                self.region = region
            self.show("the map ended with the change" if region is None else f"map of {x} and {y}")

        self._add(job)

    def compile_other_structures(self) -> None:
        """Compile, when nothing else is wanted, the loops in which a friction or the load is zero and is not."""
        for control in self.controls.by_key.values():
            if control.key == "load.mass" or (".friction." in control.key and not control.is_entry):
                self._add(lambda key=control.key: self._compile(key))

    def _compile(self, key: str) -> None:
        control = self.controls[key]
        other = control.at(0.5) if control.value == 0.0 else 0.0
        if control.low <= other and not self._wanted_again():
            settings = {**self.settings, key: other}
            with contextlib.suppress(GeomctrlError):  # moving the control shows the error
                outcome_of(self.controls.loop(settings), self.controls.dt)

    def _wanted_again(self) -> bool:
        return self._changed_at is not None or self._closed

    def _is_late(self) -> bool:
        """Whether a run that takes long is to be given up for a newer setting."""
        return self._closed or (self._changed_at is not None and time.perf_counter() - self._shown_at < MAX_SILENCE)

    def _want(self) -> None:
        self._changed_at = self._changed_at or time.perf_counter()
        self._idle.clear()
        self._wanted.set()

    def _add(self, job: Callable[[], None]) -> None:
        self._idle.clear()
        self._jobs.append(job)
        self._wanted.set()

    def _work(self) -> None:
        while self._wanted.wait():
            self._wanted.clear()
            if self._closed:
                return
            try:
                while self._wanted_again() and not self._closed:
                    self._compute(confirming=self.is_quiet)
                if self._checking and not self._wanted.wait(max(self._seconds_to_rest(), 0.0)):
                    self._compute(confirming=True)
                while self._jobs and not self._wanted_again():
                    self._jobs.pop(0)()
            except Exception as error:  # users' code may raise anything; the page must stay alive
                line = raised_in(error)
                where = "" if line is None else f" ({Path(line.filename).name}, line {line.lineno}, in {line.name})"
                self.show(RuntimeError(f"{type(error).__name__}{where}: {error}"))
            if not self._wanted.is_set():
                if self._jobs or self._checking or self._wanted_again():
                    self._wanted.set()
                else:
                    self._idle.set()

    def _compute(self, confirming: bool) -> None:
        since, settings = self._changed_at, self.settings
        self._changed_at, self._checking = None, False
        try:
            outcome = outcome_of(self.controls.loop(settings), confirming=confirming, is_late=self._is_late)
        except GeomctrlError as error:
            self.show(error)
            return
        except LateError:
            self._changed_at, self.dropped = min(since or math.inf, self._changed_at or math.inf), self.dropped + 1
            return
        now = time.perf_counter()
        if self._changed_at is not None and now - self._shown_at < MIN_INTERVAL:
            self._changed_at, self.dropped = min(since or now, self._changed_at), self.dropped + 1
            return
        self.outcome, self._settings_of_outcome, self._checking = outcome, settings, outcome.checking
        self.show(outcome)
        self._shown_at = time.perf_counter()
        if since is not None:
            self.latencies.append(self._shown_at - since)
