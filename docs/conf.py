"""The documentation site: `make docs` builds it; every ```python block of every page is run, in order, page by page."""

from __future__ import annotations

import importlib.util
import inspect
import operator
import os
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_build_tools"))
sys.path.insert(0, str(HERE.parent))
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])  # the kernels' too
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.pop("MPLBACKEND", None)  # kernels then show figures in the page; with Agg there would be none
# kernels as IPython comes, whatever the user's own is; each would warn of its connection, which stays on this machine
os.environ["IPYTHONDIR"] = str(HERE.parent / "out" / "ipython")
PROFILE = Path(os.environ["IPYTHONDIR"], "profile_default", "ipython_kernel_config.py")
PROFILE.parent.mkdir(parents=True, exist_ok=True)
PROFILE.write_text("c.IPKernelApp.log_level = 40\n", encoding="utf-8")

import pages  # noqa: E402
import papers_pages  # noqa: E402

import geomctrl  # noqa: E402

project = "geomctrl"
author = "the geomctrl developers"
copyright = "the geomctrl developers"
release = version = geomctrl.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "_build_tools", "_templates", "**.ipynb_checkpoints"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}  # autosummary writes files of the first kind
html_theme = "pydata_sphinx_theme"
html_title = "geomctrl"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_static" / "search_order.js")  # Sphinx takes other paths from the working directory
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
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autosummary_filename_map = {"geomctrl.Friction": "geomctrl.Friction_class"}  # beside geomctrl.friction on macOS


def module_lists():
    """What templates/autosummary/module.rst shows of each public module: its real name, its names, modules in it."""
    main = {id(getattr(geomctrl, name)) for name in geomctrl.NAMES}
    lists = {}

    def add(path, module):
        values = {name: getattr(module, name) for name in module.__all__}
        parts = [name for name, value in values.items() if inspect.ismodule(value)]
        names = [name for name, value in values.items() if name not in parts and id(value) not in main]
        lists[path] = {
            "home": module.__name__,
            "names": [f"{path}.{name}" for name in names],
            "parts": [f"{path}.{name}" for name in parts],
        }
        for name in parts:
            add(f"{path}.{name}", values[name])

    for name in geomctrl.MODULES:
        add(f"geomctrl.{name}", getattr(geomctrl, name))
    return lists


INHERITING = ("geomctrl.Plant",)  # classes whose pages have the methods of their base classes, too
autosummary_context = {"public": module_lists(), "inheriting": INHERITING}


def documented():
    """The full names of all objects that have an entry in the reference, methods of classes included."""
    paths = [f"geomctrl.{name}" for name in geomctrl.NAMES]
    paths += [path for module in autosummary_context["public"].values() for path in module["names"]]
    for path in list(paths):
        value = operator.attrgetter(path.removeprefix("geomctrl."))(geomctrl)
        if inspect.isclass(value):
            kinds = value.__mro__ if path in INHERITING else (value,)
            members = {name: x for kind in kinds for name, x in vars(kind).items() if not name.startswith("_")}
            members = {name: getattr(x, "__func__", x) for name, x in members.items()}  # of static and class methods
            paths += [f"{path}.{name}" for name, x in members.items() if inspect.isfunction(x) and inspect.getdoc(x)]
    return paths


def literal_equations(app, what, name, obj, options, lines):
    """Indented equations and tables of docstrings are literal blocks, and bars are norms, not substitutions."""
    if what == "data" and obj.__doc__ == type(obj).__doc__:  # the documentation of dict, not of this dictionary
        lines.clear()
    out, in_prose, literal, in_item = [], True, False, False
    for line, following in zip(lines, [*lines[1:], ""]):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if text and set(following.strip()) == {"-"} and len(following.strip()) > 2:
            in_prose = text == "Notes"
        if in_prose and text and indent >= 4 and not (in_item and out[-1]):
            if not literal and not next((x for x in reversed(out) if x), "").endswith("::"):
                out += ["", "::", ""]
            literal = True
        elif text:
            out += [""] if literal and out[-1] else []
            literal, in_item = False, (in_item and indent > 0) or bool(re.match(r"(\d+\.|-) ", text))
        is_code = literal or text.startswith((">>>", "..."))
        parts = re.split(r"(`+[^`]+`+)", line)  # code in quotes keeps its bars
        out.append(line if is_code else "".join(x if x[:1] == "`" else x.replace("|", "\\|") for x in parts))
    lines[:] = out


def mathjax(app):
    folder = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent
    shutil.copyfile(folder / "static" / "mathjax" / "tex-svg.js", HERE / "_static" / "tex-svg.js")


def setup(app):
    app.connect("builder-inited", papers_pages.write, priority=400)  # before autosummary and the search for files
    app.connect("builder-inited", mathjax)
    app.connect("builder-inited", pages.write_gallery, priority=400)
    app.connect("source-read", pages.read_benchmarks)
    app.connect("source-read", pages.read_commands)
    app.connect("env-before-read-docs", pages.execute_cells)
    app.connect("source-read", pages.link_names(documented()))
    app.connect("source-read", pages.read_cells)
    app.connect("autodoc-process-docstring", literal_equations, priority=400)  # before numpydoc
    return {"parallel_read_safe": False}
