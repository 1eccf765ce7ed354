"""Pages that are made when the site is built: one that says the same is not written, and so not built, again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Files of `folder` and their texts; what else is in it, but folders, goes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in set(folder.iterdir()) - {folder / name for name in pages}:
        if path.is_file():
            path.unlink()
