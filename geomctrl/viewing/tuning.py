"""The page of `geomctrl tune`: sliders for the numbers of a closed loop, the robot, curves, verdicts and measures.

The page shows a session and passes on what the user does; it computes nothing. Sliders call back in viser's event loop,
in the order of their messages, and buttons from a pool of threads.
"""

from __future__ import annotations

import contextlib
import html
import threading
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.errors import GeomctrlError

from .live import RATE
from .scene import GHOST, Scene, all_poses, movie
from .server import serve, stop
from .tuning_html import (
    COLOURS,
    NEUTRAL,
    coloured_line,
    escaped,
    heat_map,
    label_of,
    measures_table,
    power_of_ten,
    short_numbers,
    summary_of,
)

SLIDER_STEP = 0.002  # of a slider from 0 to 1
SAME_POSITION = 1e-6  # positions that differ by less are one
NOW, PINS = "#0072B2", ("#D55E00", "#009E73", "#CC79A7", "#8C8C8C")
SAME_ASPECT = 0.05  # relative change of a picture's shape that needs no new view
PANEL_WIDTH = 430  # pixels
LABEL_ROOM = 0.2  # of a slider, that a mark's label needs
# a slider counts from 0 to 1, which is of no use next to its label with the value
HIDE_SHARES = "<style>.mantine-Slider-root + .mantine-NumberInput-root { display: none; }</style>"
COPY = '<button onclick="navigator.clipboard.writeText(this.previousElementSibling.innerText)">copy</button>'


class TuningPage:
    """A page that shows a tuning session until `close`; open pages share one setting."""

    def __init__(self, session: Any, port: int = 8080, token: str | None = None, folder: Path = Path("out/tune")):
        self.session, self.folder, self._token = session, folder, token
        self.robot = session.controls.plant.robot
        self.drawn = 0  # outcomes that are on the page
        self._lock, self._closed = threading.RLock(), threading.Event()
        self._movie: list[np.ndarray] | None = None  # poses of the robot and of the desired one
        self._run: Any = None  # a run whose robot is not drawn yet
        self._frame = 0
        self._server: Any = serve(port, token)
        try:
            self._scene = Scene(self._server, self.robot, None, GHOST)
            self._scene.surroundings(all_poses(self.robot, session.controls.loop(session.settings).q0[None]))
            self._scene.aim_first()
            self._server.on_client_connect(self._aim)
            self._add_controls()
            self._add_results()
        except BaseException:
            stop(self._server)
            raise
        session.show = self._show
        session.start()
        session.compile_other_structures()
        threading.Thread(target=self._play, daemon=True).start()

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://localhost:{self._server.get_port()}" + (f"/?token={self._token}" if self._token else "")

    def __repr__(self) -> str:
        return "<TuningPage, closed>" if self._closed.is_set() else f"<TuningPage at {self.address}>"

    def close(self) -> None:
        """Close the page; further calls do nothing."""
        if not self._closed.is_set():
            self._closed.set()
            self.session.close()
            stop(self._server)

    def wait(self) -> None:
        """Wait until the page is closed by another thread, or for Ctrl-C."""
        while not self._closed.wait(1.0):
            pass

    # --- construction ------------------------------------------------------------------------------------------------

    def _add_controls(self) -> None:
        gui = self._server.gui
        gui.configure_theme(show_logo=False, show_share_button=False)
        gui.main_panel.dock_left()
        self._status = gui.add_html(HIDE_SHARES)
        self._actions = gui.add_button_group("setting", ("undo", "pin", "code"))
        acts = {"undo": self._undo, "pin": self._pin, "code": self._show_code}
        self._actions.on_click(lambda event: acts[event.target.value]())
        self._playing = gui.add_checkbox("play", True)
        end = f"{self.session.controls.t_end:g} s"
        self._time = gui.add_slider("time", 0.0, 1.0, SLIDER_STEP, 0.0, marks=((0.0, "0"), (1.0, end)))
        self._time.on_update(lambda _: self._seek())
        self._sliders: dict[str, Any] = {}
        self._folders: dict[str, Any] = {}
        self._marked: dict[str, Any] = {}
        by_key = self.session.controls.by_key
        for group in dict.fromkeys(control.group for control in by_key.values()):
            controls = [control for control in by_key.values() if control.group == group]
            entries = [control for control in controls if control.is_entry]
            with gui.add_folder(group) as folder:
                for control in controls:
                    if control not in entries:
                        self._add_slider(control, folder)
                if entries:
                    with gui.add_folder("entries", expand_by_default=False) as inner:
                        for control in entries:
                            self._add_slider(control, inner)

    def _add_slider(self, control: Any, folder: Any) -> None:
        edge, old = self.session.edges.get(control.key), self._sliders.get(control.key)
        marks = [(0.0, f"{control.low:.4g}"), (1.0, f"{control.high:.4g}")]
        if edge is not None and edge.held is not None:
            position = control.position(edge.held)
            marks = [mark for mark in marks if abs(mark[0] - position) > LABEL_ROOM] + [(position, "edge")]
        settings = self.session.settings
        slider = self._server.gui.add_slider(
            label_of(control, settings), 0.0, 1.0, SLIDER_STEP, control.position(settings[control.key]), marks=marks,
            hint=f"{control.key}, from {control.low:.4g} to {control.high:.4g}", order=old.order if old else None,
        )  # fmt: skip
        if old is not None:
            old.remove()
        self._sliders[control.key], self._folders[control.key] = slider, folder

        async def moved(_: Any) -> None:  # viser runs coroutines at once and passes functions to another thread
            self._moved(control.key)

        slider.on_update(moved)

    def _add_results(self) -> None:
        gui = self._server.gui
        panel, self._plots = gui.add_panel(), {}
        keys = tuple(self.session.controls.by_key)
        with panel.add_tab("run"):
            self._verdicts = gui.add_html("")
            self._curves = gui.add_folder("curves")
            self._measures = gui.add_html("")
        with panel.add_tab("edges"):
            self._x = gui.add_dropdown("control", keys)
            self._range = gui.add_text("range", "", hint="of the control: low:high")
            self._x.on_update(lambda _: self._show_range())
            self._show_range()
            gui.add_button("set range").on_click(lambda _: self._set_range())
            self._y = gui.add_dropdown("and", keys, initial_value=keys[min(1, len(keys) - 1)])
            self._search = gui.add_button_group("find", ("edge", "map"))
            self._search.on_click(lambda event: self._find(event.target.value))
            self._message, self._map = gui.add_markdown(""), gui.add_folder("map")
            self._cells: list[Any] = []
            self._mapped: Any = None
        with panel.add_tab("save"):
            kinds = {
                "run": "run.npz",
                "settings": "settings.toml",
                "sweep": "sweep.py",
                "code": "loop.py",
                "C": "law.c",
            }
            gui.add_markdown(
                f"Files go to {escaped(str(self.folder))}. A sweep varies the control chosen under *edges*."
            )
            saving = gui.add_button_group("save", tuple(kinds))
            saving.on_click(lambda event: self._save(kinds[event.target.value]))
            self._saved = gui.add_markdown("")
        panel.dock_right()
        panel.set_width(PANEL_WIDTH)
        panel.expand()  # on narrow screens panels are closed sections below the sliders

    def _aim(self, client: Any) -> None:
        """Aim a camera, and again when the docked panels have made its picture smaller."""
        self._scene.aim(client)
        aspect = client.camera.aspect

        def resized(camera: Any) -> None:
            nonlocal aspect
            if abs(camera.aspect / aspect - 1.0) > SAME_ASPECT:
                aspect = camera.aspect
                self._scene.aim(client)

        client.camera.on_update(resized)

    # --- what the user does ------------------------------------------------------------------------------------------

    def _moved(self, key: str) -> None:
        control, position = self.session.controls[key], self._sliders[key].value
        if abs(position - control.position(self.session.settings[key])) > SAME_POSITION:
            self.session.change(key, control.at(position))

    def _undo(self) -> None:
        self.session.undo()
        self._follow()

    def _pin(self) -> None:
        self.session.pin()
        if self.session.outcome is not None:
            self._draw(self.session.outcome)

    def _show_code(self) -> None:
        text = self.session.code()
        with self._server.gui.add_modal("Python code of this run") as modal:
            self._server.gui.add_html(
                f'<pre id="code" style="overflow:auto;max-height:60vh;font-size:0.8em">{html.escape(text)}</pre>{COPY}'
            )
            self._server.gui.add_button("close").on_click(lambda _: modal.close())

    def _show_range(self) -> None:
        control = self.session.controls[self._x.value]
        self._range.value = f"{control.low:.6g}:{control.high:.6g}"

    def _set_range(self) -> None:
        key, text = self._x.value, self._range.value
        try:
            limits: Any = [float(x) for x in text.split(":")]
        except ValueError:
            limits = text
        try:
            self.session.set_range(key, limits)
        except GeomctrlError as error:
            self._message.content = escaped(str(error))
            return
        with self._lock, self._server.atomic(), self._folders[key]:
            self._message.content = escaped(f"{key} ranges from {limits[0]:.6g} to {limits[1]:.6g}")
            self._add_slider(self.session.controls[key], self._folders[key])

    def _find(self, kind: str) -> None:
        self._message.content = "searching; a change of the setting ends the search"
        try:
            if kind == "edge":
                self.session.search_edge(self._x.value)
            else:
                self.session.search_region(self._x.value, self._y.value)
        except GeomctrlError as error:
            self._message.content = escaped(str(error))

    def _save(self, kind: str) -> None:
        try:
            self._saved.content = f"wrote {escaped(str(self.session.save(kind, self.folder, self._x.value)))}"
        except (GeomctrlError, OSError) as error:
            self._saved.content = escaped(str(error))

    def _seek(self) -> None:
        if self._movie is not None and not self._playing.value:
            self._frame = round(self._time.value * (len(self._movie[0]) - 1))
            self._pose()

    # --- what the session shows --------------------------------------------------------------------------------------

    def _show(self, result: Any) -> None:
        if self._closed.is_set():
            return
        if isinstance(result, Exception):
            self._status.content = HIDE_SHARES + coloured_line(COLOURS["VIOLATED"], str(result))
            return
        if isinstance(result, str):
            self._message.content = escaped(result)
            self._mark()
            return
        with self._server.atomic():  # one message with curves and labels, which the browser shows at once
            self._draw(result)
            self._follow()
        self._server.flush()

    def _draw(self, outcome: Any) -> None:
        with self._lock, self._server.atomic():
            notes = "".join(coloured_line(COLOURS["UNRESOLVED"], note) for note in outcome.notes)
            lines = [
                coloured_line(COLOURS.get(v.verdict, NEUTRAL), f"{v.name}: {v.verdict}", v.text)
                for v in outcome.verdicts
            ]
            self._status.content = HIDE_SHARES + summary_of(outcome) + notes
            self._verdicts.content = "".join(lines)
            self._measures.content = measures_table(outcome, self.session.pins)
            for title in outcome.curves:
                self._plot(title, outcome)
        self._run = outcome.run
        self.drawn += 1

    def _plot(self, title: str, outcome: Any) -> None:
        """Draw a curve and those of the pins, up to the first time at which one of their runs has ended.

        Only data are sent to a plot: if its title or series change, the browser builds it again and may draw no line.
        """
        pinned = [x.outcome.curves[title] for x in self.session.pins if title in x.outcome.curves]
        ys = np.stack([*pinned, outcome.curves[title], outcome.promised.get(title, outcome.curves[title])])
        defined = np.isfinite(ys).all(axis=0)  # the browser draws nothing at all if one number is nan
        power = power_of_ten(ys[:, defined]) if "[" in title else 0  # ticks of the plot have three decimals
        name = title.replace("[", f"[1e{power} ") if power else title
        *pins, now, promised = ys[:, defined] / 10.0**power
        if title not in self._plots:
            pens = [{"label": f"pin {k + 1}", "stroke": colour, "width": 1.5} for k, colour in enumerate(PINS)]
            series = [
                {"label": "now", "stroke": NOW, "width": 2},
                {"label": "promised", "stroke": "#222", "dash": [6, 4]},
            ]
            with self._curves:
                heading = self._server.gui.add_html("")
                plot = self._server.gui.add_uplot(
                    (outcome.t[defined], *[now] * (len(PINS) + 2)), ({"label": "t"}, *pens, *series), height=130,
                    padding=(12, 12, 0, 0), scales={"x": {"time": False}}, legend={"show": False},
                )  # fmt: skip
            self._plots[title] = heading, plot
        heading, plot = self._plots[title]
        if title in outcome.promised:
            name += ", promised bound dashed,"
        else:
            promised = np.empty(0)
        heading.content = f'<div style="text-align:center;font-size:0.85em">{html.escape(name)} over t [s]</div>'
        plot.data = (outcome.t[defined], *pins, *[np.empty(0)] * (len(PINS) - len(pins)), now, promised)

    def _follow(self) -> None:
        """Move sliders and labels to the setting, which another page or undo may have changed."""
        settings = self.session.settings
        with self._lock, self._server.atomic():
            for key, slider in self._sliders.items():
                control = self.session.controls[key]
                position = control.position(settings[key])
                if self.session.is_quiet and abs(slider.value - position) > SLIDER_STEP:
                    slider.value = position
                slider.label = label_of(control, settings)

    def _mark(self) -> None:
        """Draw new edges on their sliders, and a new map."""
        with self._lock, self._server.atomic():
            for key, edge in [*self.session.edges.items()]:
                if self._marked.get(key) is not edge:
                    self._marked[key] = edge
                    with self._folders[key]:
                        self._add_slider(self.session.controls[key], self._folders[key])
            region = self.session.region
            if region is not None and region is not self._mapped:
                self._mapped = region
                self._add_map(region)
        self._server.flush()

    def _add_map(self, region: Any) -> None:
        """A heat map, and for each of its rows buttons that set both controls."""
        for handle in self._cells:
            handle.remove()
        with self._map:
            self._cells = [self._server.gui.add_html(heat_map(region))]
            names = short_numbers(region.x_values)
            for j in reversed(range(len(region.y_values))):
                row = self._server.gui.add_button_group(f"{region.y_values[j]:.4g}", names, hint=region.y)
                row.on_click(lambda event, j=j: self._go(region, names.index(event.target.value), j))
                self._cells.append(row)

    def _go(self, region: Any, i: int, j: int) -> None:
        self.session.apply({region.x: float(region.x_values[i]), region.y: float(region.y_values[j])})
        self._follow()

    def _play(self) -> None:
        """Move the robot and draw its path once no slider is dragged.

        Without a graphics card a picture in three dimensions takes 0.3 s of all cores, and curves would wait for it.
        """
        while not self._closed.wait(1.0 / RATE):
            if self.session.is_quiet and (self._run is not None or self._playing.value):
                self._frame += self._playing.value
                with contextlib.suppress(Exception):  # the server may close meanwhile
                    self._pose()

    def _pose(self) -> None:
        with self._lock:
            run, self._run, path = self._run, None, None
        if run is not None:
            *self._movie, path = movie(self.robot, run, RATE)
        if self._movie is not None:
            actual, desired = self._movie
            if self._frame >= len(actual):
                self._frame = 0 if self._playing.value else len(actual) - 1
            with self._server.atomic():
                if path is not None:
                    self._scene.trail(path)
                self._scene.show(actual[self._frame], desired[self._frame])
