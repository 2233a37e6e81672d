"""`projfree predict`: apply a saved model to a table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from projfree.cli import options
from projfree.cli.destinations import new_file_at, safe_cell, written
from projfree.cli.output import Debug, Force, Json, Quiet, guarded, note, out, reporting, show_json
from projfree.cli.streaming import frames_of
from projfree.cli.tables import Reading, check_path, column_of, read_table

EPILOG = (
    "Examples:\n\nprojfree predict model new.csv --out predictions.csv\n\n"
    "projfree predict model new.csv --proba            # one line a row: the label and the probabilities"
)


@guarded
def predict(
    model: Annotated[Path, typer.Argument(help="The folder that fit or complete wrote.", show_default=False)],
    data: options.Data,
    to: Annotated[Path | None, typer.Option("--out", help="A CSV file to write; else the screen.")] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    sep: options.Sep = None,
    header: options.Header = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Predict for the rows of a table; columns that the model does not know are ignored."""
    if to is not None:
        new_file_at(to, [data, model], force)
    check_path(data)
    fitted = loaded(model)
    classes = _classes(fitted, model) if proba else []
    names, count = ["prediction", *(f"probability of {name}" for name in classes)], 0
    rows = _predicted(fitted, data, Reading(sep, header), proba, quiet or json)
    if to is None:
        found = list(rows)
        if json:
            show_json(
                {"rows": len(found), "columns": names, "predictions": found if proba else [row[0] for row in found]}
            )
        else:
            typer.echo("\n".join(",".join(map(str, row)) for row in found))
        return
    with written(to, force) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            writer.writerow([safe_cell(cell) for cell in row])
            count += 1
    with reporting(to):
        if json:
            show_json({"rows": count, "columns": names, "out": str(to)})
        elif not quiet:
            out().print(f"{count:,} predictions written to {to}", markup=False)


def loaded(path: Path) -> Any:
    """The model in a folder, or a sentence where there is none."""
    from projfree.estimators import load

    if not path.is_dir():
        raise FileNotFoundError(f"{str(path)!r} is no folder with a model; projfree fit writes one.")
    return load(path)


def _classes(fitted: Any, path: Path) -> list[Any]:
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(f"--proba needs a model of classes whose loss has probabilities, and {str(path)!r} is none.")
    return list(fitted.classes_.tolist())


def _predicted(fitted: Any, path: Path, reading: Reading, proba: bool, quiet: bool) -> Iterator[list[Any]]:
    """A row for each row of the table, a part of the table at a time."""
    encoder = getattr(fitted, "named_steps", {}).get("encoder")
    text = _text_columns(fitted, encoder)
    ids = [str(name) for name in fitted.columns[:2]] if hasattr(fitted, "user_ids_") else []
    for frame in _frames(path, reading, text, ids, quiet):
        X = _features(fitted, frame, path)
        for name, k in ({} if encoder is None else encoder.unseen(X)).items():
            have = "row has" if k == 1 else "rows have"
            note(f"{k:,} {have} a level of column {name!r} that the fit had not seen; it counts as none.", quiet)
        values = [fitted.predict(X).tolist()]
        values += fitted.predict_proba(X).T.tolist() if proba else []
        yield from (list(row) for row in zip(*values, strict=True))


def _text_columns(fitted: Any, encoder: Any) -> list[str]:
    """The columns that are text, also where all of their cells look like numbers."""
    if encoder is not None:
        return list(encoder.levels_)
    ids = (getattr(fitted, name, None) for name in ("user_ids_", "item_ids_"))
    named = zip(getattr(fitted, "columns", ()), ids, strict=False)
    return [name for name, labels in named if labels is not None and labels.dtype.kind == "U"]


def _frames(path: Path, reading: Reading, text: list[str], ids: list[str], quiet: bool) -> Iterator[Any]:
    if check_path(path) in (".parquet", ".npy"):
        yield from frames_of(path)
        return
    table = read_table(path, reading, text, ids)
    if table.remark:
        note(table.remark, quiet)
    yield table.frame


def _features(fitted: Any, frame: Any, path: Path) -> Any:
    """The columns that the model was fitted with, in its order."""
    if hasattr(fitted, "user_ids_"):
        return frame[[column_of(list(frame.columns), str(name), "the table", path) for name in fitted.columns[:2]]]
    encoder = getattr(fitted, "named_steps", {}).get("encoder")
    names = encoder.columns_ if encoder is not None else getattr(fitted, "feature_names_in_", None)
    if names is None:
        wanted = int(fitted.n_features_in_)
        if frame.shape[1] != wanted:
            raise ValueError(
                f"{str(path)!r} must have {wanted} columns, the features of the model, which have no names, got "
                f"{frame.shape[1]}; leave out others, such as the target."
            )
        return _numbers(frame).to_numpy()
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(f"{str(path)!r} has no column {missing[0]!r}, which the model was fitted with.")
    return frame[list(names)] if encoder is not None else _numbers(frame[list(names)])


def _numbers(frame: Any) -> Any:
    from projfree.estimators.table_encoder import TableEncoder

    return TableEncoder(one_hot="none").fit_transform(frame)
