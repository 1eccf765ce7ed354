"""List the bundled robots."""

from rich.table import Table

from .terminal import stdout_console


def robots() -> None:
    from geomctrl import models

    table = Table()
    for name in ("name", "bodies", "nv", "mass [kg]", "base", "description"):
        table.add_column(name)
    for name in models.names():
        r = models.load(name)
        description = (getattr(models, name).__doc__ or name).strip().splitlines()[0]
        base = "free" if r.joints[0].kind == "free" else "fixed"
        table.add_row(name, str(r.nbodies), str(r.nv), f"{r.parameters[:, 0].sum():.4g}", base, description)
    stdout_console().print(table)
