"""`projfree predict`: apply a saved model to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from projfree.cli import models
from projfree.cli.output import Json, guarded, out, show_json
from projfree.cli.tables import read_table

EPILOG = (
    "Examples:\n\nprojfree predict model new.csv --out predictions.csv\n\n"
    "projfree predict model new.csv            # one prediction a line"
)


@guarded
def predict(
    model: Annotated[Path, typer.Argument(help="The folder that fit or complete wrote.", show_default=False)],
    data: models.Data,
    to: Annotated[Path | None, typer.Option("--out", help="A CSV file to write; else the screen.")] = None,
    json: Json = False,
) -> None:
    """Predict for the rows of a table; columns that the model does not know are ignored."""
    fitted, completion = _loaded(model)
    table = read_table(data)
    if completion:
        pairs = table.frame[[table.column(name, "the table") for name in fitted.columns[:2]]]
        predicted = fitted.predict(pairs)
    else:
        predicted = fitted.predict(_columns(fitted, table))
    values = predicted.tolist()
    if to is not None:
        to.write_text("\n".join(["prediction", *map(str, values)]) + "\n", encoding="utf-8")
    if json:
        show_json({"rows": len(values), "out": None if to is None else str(to), "predictions": None if to else values})
    elif to is not None:
        out().print(f"{len(values):,} predictions written to {to}")
    else:
        typer.echo("\n".join(map(str, values)))


def _loaded(path: Path) -> tuple[Any, bool]:
    """The model in a folder, and whether it completes a matrix."""
    from projfree.estimators import load
    from projfree.estimators.completion import MatrixCompletion

    if not path.is_dir():
        raise FileNotFoundError(f"{str(path)!r} is no folder with a model; projfree fit writes one.")
    try:
        return load(path), False
    except ValueError as linear:
        try:
            return MatrixCompletion.load(path), True
        except ValueError:
            raise linear from None


def _columns(fitted: Any, table: Any) -> Any:
    """The features that the model was fitted with, in its order."""
    names = getattr(fitted, "feature_names_in_", None)
    if names is None:
        return table.features([]) if not table.named else table.features([]).to_numpy()
    missing = [name for name in names if name not in table.frame.columns]
    if missing:
        raise ValueError(f"{str(table.path)!r} has no column {missing[0]!r}, which the model was fitted with.")
    extra = [name for name in table.frame.columns if name not in set(names)]
    return table.features(extra)[list(names)]
