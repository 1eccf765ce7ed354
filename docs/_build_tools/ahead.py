"""Cells are run before Sphinx reads the pages, as many pages at once as there are processors.

MyST-NB runs page after page while Sphinx reads them, a kernel each; what it finds in its cache it does not run. A page
that fails is left to it: it runs the page again and says what went wrong.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cells
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from myst_nb.core.read import create_nb_reader


def run(app: Any, env: Any, names: list[str]) -> None:
    """Sphinx's event env-before-read-docs."""
    config = env.mystnb_config
    if config.execution_mode != "cache":
        return
    cache = get_cache(config.execution_cache_path)
    waiting = []
    for name in names:
        path = str(env.doc2path(name))
        source = [Path(path).read_text(encoding="utf-8")]
        cells.read(app, name, source)
        if (reader := create_nb_reader(path, env.myst_config, config, source[0])) is None:
            continue
        notebook = reader.read(source[0])
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            waiting.append((path, notebook))

    def executed(job: tuple[str, Any]) -> ExecutionResult:
        with TemporaryDirectory() as folder:
            return single_nb_execution(
                job[1], cwd=folder, allow_errors=config.execution_allow_errors, timeout=config.execution_timeout
            )

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (path, notebook), result in zip(waiting, pool.map(executed, waiting)):
            if result.err is None:
                found = CacheBundleIn(notebook, path, data={"execution_seconds": result.time})
                cache.cache_notebook_bundle(found, check_validity=False, overwrite=True)
