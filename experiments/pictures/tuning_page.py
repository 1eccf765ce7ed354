"""The animated picture docs/tune.webp of the README: a load is dragged on the page of `gc.tune` until a proof breaks.

    python experiments/pictures/tuning_page.py

It needs Chromium and the extra `view`. The pointer is drawn, because a picture of a page has none.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import geomctrl as gc

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.script import run_script
from viewing.chromium import chromium
from viewing.test_tuning_in_a_browser import TEXT, box

OUT = Path(__file__).parents[2] / "docs" / "tune.webp"
WIDTH, HEIGHT, SHOWN = 1240, 980, 0.72  # pixels of the page, and its scale in the picture
RATE = 6.0  # pictures a second
BEFORE, DRAG, AFTER = 6, 14, 12  # pictures before, during and after the movement
LOAD = 0.6  # of the slider's range, where the movement ends
PLAIN = "const style = document.createElement('style');" + (
    "style.textContent = '.mantine-Notification-root { display: none !important; }';document.head.append(style); true"
)


def main(*, out: Path = OUT, quality: int = 60, middle: bool = False) -> None:
    """Draw the animated picture of the tuning page.

    Parameters
    ----------
    out
        The WebP file.
    quality
        Of the WebP file, from 0 to 100.
    middle
        Also write the last picture as a PNG file.
    """
    robot = gc.models.panda()
    motion = gc.references.Sinusoids(robot, np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]), 0.3, 0.3)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = gc.tune(robot, gc.controllers.Passivity(robot, motion), t_end=5.0, port=0, out=folder)
        try:
            pictures = taken(browser, page)
        finally:
            page.close()
    if middle:
        pictures[-1].save(out.with_suffix(".png"))
    pause = round(1000.0 / RATE)
    times = [pause] * (len(pictures) - 1) + [8 * pause]
    pictures[0].save(out, save_all=True, append_images=pictures[1:], duration=times, loop=0, quality=quality, method=6)
    print(f"wrote {out}, {out.stat().st_size / 1e3:.0f} kB, {len(pictures)} pictures")


def taken(browser, page) -> list[Image.Image]:
    """Pictures of the page while the load is moved."""
    session = page.session
    session.wait(300)
    page._playing.value = False
    browser.open(page.address, WIDTH, HEIGHT)
    browser.wait(f"/lyapunov: held/.test({TEXT})", 300)
    browser.run(PLAIN)
    left, top, width, height = box(browser, "mass")
    load = session.controls["load.mass"]
    shares = [*[0.0] * BEFORE, *np.linspace(0.0, LOAD, DRAG), *[LOAD] * AFTER]
    pictures = []
    for k, share in enumerate(shares):
        session.change(load.key, load.at(share))
        if k < BEFORE or k >= BEFORE + DRAG:
            session.wait(60)
        page._follow()
        page._frame = round(k / len(shares) * (len(page._movie[0]) - 1))
        page._pose()
        time.sleep(1.0)
        picture = Image.fromarray(browser.picture().astype(np.uint8))
        pointer(picture, left + share * width, top + 0.5 * height)
        pictures.append(picture.resize((round(SHOWN * WIDTH), round(SHOWN * HEIGHT)), Image.Resampling.LANCZOS))
    return pictures


def pointer(picture: Image.Image, x: float, y: float) -> None:
    shape = [(0, 0), (0, 17), (4, 13), (7, 19), (10, 18), (7, 12), (12, 12)]
    ImageDraw.Draw(picture).polygon([(x + a, y + b) for a, b in shape], fill="black", outline="white")


if __name__ == "__main__":
    run_script(main)
