"""The documentation site: `make docs` builds it; every ```python block of every page is run, in order, page by page."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_build_tools"))
sys.path.insert(0, str(HERE.parent))
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])  # the kernels' too
os.environ.setdefault("OMP_NUM_THREADS", "1")
# kernels as IPython comes, whatever the user's own is; each would warn of its connection, which stays on this machine
os.environ["IPYTHONDIR"] = str(HERE.parent / "out" / "ipython")
PROFILE = Path(os.environ["IPYTHONDIR"], "profile_default", "ipython_kernel_config.py")
PROFILE.parent.mkdir(parents=True, exist_ok=True)
PROFILE.write_text("c.IPKernelApp.log_level = 40\n", encoding="utf-8")

import ahead  # noqa: E402
import benchmarks_page  # noqa: E402
import cells  # noqa: E402
import docstrings  # noqa: E402
import gallery  # noqa: E402
import papers_pages  # noqa: E402
import reference  # noqa: E402

import geomctrl  # noqa: E402

project = "geomctrl"
author = "the geomctrl developers"
copyright = "the geomctrl developers"
release = version = geomctrl.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "_build_tools", "**.ipynb_checkpoints"]
source_suffix = {".md": "myst-nb", ".rst": "restructuredtext"}
html_theme = "pydata_sphinx_theme"
html_title = "geomctrl"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {page: [] for page in ("index", "comparison", "benchmarks", "how-to/gallery/index")}  # single pages
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # links into the repository, which `repository` in cells resolves

nb_execution_mode = "cache" if os.environ.get("DOCS_RUN", "1") == "1" else "off"
nb_execution_timeout = 240
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True

smartquotes = False
mathjax_path = "tex-svg.js"  # one file, beside the pages: equations are there without a network
default_role = "py:obj"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True


def mathjax(app):
    folder = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent
    shutil.copyfile(folder / "static" / "mathjax" / "tex-svg.js", HERE / "_static" / "tex-svg.js")


def setup(app):
    app.connect("builder-inited", reference.write)
    app.connect("builder-inited", papers_pages.write)
    app.connect("builder-inited", mathjax)
    app.connect("builder-inited", gallery.write)
    app.connect("source-read", benchmarks_page.read)
    app.connect("env-before-read-docs", ahead.run)
    app.connect("source-read", cells.read)
    app.connect("autodoc-process-docstring", docstrings.process)
    return {"parallel_read_safe": False}
