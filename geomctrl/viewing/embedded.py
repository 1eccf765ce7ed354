"""Figures inside a web page: SVG with text as text, in the page's colours, which may be dark.

The page defines `color` for axes and text, and the variables --grid, --shade, --measured, --predicted, --residual,
--unseen for the rest. Without them, the colours are those of the files.
"""

from __future__ import annotations

import io
import re
from hashlib import sha256
from html import escape
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from . import fits

COLOURS = {
    fits.INK: "currentColor",
    fits.GRID: f"var(--grid, {fits.GRID})",
    fits.SHADE: f"var(--shade, {fits.SHADE})",
    fits.MEASURED: f"var(--measured, {fits.MEASURED})",
    fits.PREDICTED: f"var(--predicted, {fits.PREDICTED})",
    fits.RESIDUAL: f"var(--residual, {fits.RESIDUAL})",
    fits.UNSEEN: f"var(--unseen, {fits.UNSEEN})",
}
IMAGE_DPI = 100  # resolution of rasterised parts of the SVG, for plots with many points
MAX_SVG_CHARACTERS = 200_000  # characters: a figure whose SVG is longer is rasterised
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def inline_svg(figure: Figure, description: str) -> str:
    """Return the figure as an <svg> element, or an <img> if that is smaller; `description` is the alternative text."""
    salt = sha256(description.encode()).hexdigest()[:12]
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": salt, "svg.id": None, "path.simplify_threshold": 0.3}
    file = io.StringIO()
    FigureCanvasSVG(figure)
    with matplotlib.rc_context(settings):
        figure.savefig(file, format="svg", transparent=True, metadata=NO_METADATA, dpi=IMAGE_DPI)
    svg = _cleaned(file.getvalue(), description)
    return svg if len(svg) <= MAX_SVG_CHARACTERS else _image(figure, description)


def _cleaned(text: str, description: str) -> str:
    svg = text[text.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # ids such as figure_1 would occur in every figure of the page
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")  # HTML does not need namespaces
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # it would apply to the whole page
    svg = re.sub(r"font-family: [^;\"]*;?", "", svg)
    svg = re.sub(r' (?:d|x|y|transform)="[^"]*"', _rounded, svg)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    view = re.search(r'viewBox="([^"]*)"', svg)
    assert view is not None
    head = f'<svg viewBox="{view[1]}" role="img" aria-label="{escape(description)}">'
    svg = head + svg[svg.index(">") + 1 :]
    for colour, role in COLOURS.items():
        svg = svg.replace(colour, role)
    return re.sub(r"\s*\n\s*", " ", svg).strip()


def _rounded(attribute: re.Match[str]) -> str:
    """Round to hundredths of a point."""
    return re.sub(r"(\.\d\d)\d+", r"\1", attribute[0])


def _image(figure: Figure, description: str) -> str:
    from base64 import b64encode

    from matplotlib.backends.backend_agg import FigureCanvasAgg

    file = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(file, format="png", dpi=2 * IMAGE_DPI, facecolor="white")
    return f'<img alt="{escape(description)}" src="data:image/png;base64,{b64encode(file.getvalue()).decode()}">'
