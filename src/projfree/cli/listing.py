"""`projfree list`: what there is."""

from __future__ import annotations

import inspect
from enum import StrEnum
from typing import Annotated, Any

import typer

from projfree.cli.output import Json, guarded, out, show_json

EPILOG = "Example:\n\nprojfree list losses"


class Kind(StrEnum):
    """What can be listed."""

    losses = "losses"
    sets = "sets"
    solvers = "solvers"


@guarded
def listing(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    json: Json = False,
) -> None:
    """List the losses, sets or solvers of the package."""
    from projfree.losses import LOSSES
    from projfree.sets import SETS
    from projfree.solvers import SOLVERS

    kinds: dict[str, tuple[type[Any], ...]] = {"losses": LOSSES, "sets": SETS, "solvers": SOLVERS}
    found = {cls.__name__: _sentence(cls) for cls in kinds[kind.value]}
    if json:
        show_json(found)
        return
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in found.items():
        table.add_row(name, text)
    console = out()
    if not console.is_terminal:
        console.width = 160
    console.print(table)


def _sentence(cls: type[Any]) -> str:
    """The first sentence of a docstring, without its markup."""
    first = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")
    return first.replace("`", "")
