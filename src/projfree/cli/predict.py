"""`projfree predict`: apply a saved model to a table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from projfree.cli import options
from projfree.cli.output import check_place, guarded, note, reporting, safe_cell, show_json, text_file
from projfree.cli.tables import as_ids, chunks_of, column_of, features, kind_of, read_table
from projfree.estimators.encoding import pack_encoder

EPILOG = (
    "Examples:\n\nprojfree predict model new.csv --out predictions.csv\n\n"
    "projfree predict model new.csv --proba            # one line a row: the label and the probabilities"
)


@guarded
def predict(
    model: options.Model,
    data: options.Data,
    out: options.CsvFile = None,
    proba: Annotated[bool, options.option("Add the probability of each class.", "--proba")] = False,
    sep: options.Sep = None,
    header: options.Header = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Predict for the rows of a table; columns that the model does not know are ignored."""
    if out is not None:
        check_place(out, [data, model], force)
    fitted = loaded(model)
    if proba and not hasattr(fitted, "predict_proba"):
        raise ValueError(f"--proba needs a model of classes whose loss has probabilities, and {str(model)!r} is none.")
    coef: Any = getattr(fitted[-1] if hasattr(fitted, "named_steps") else fitted, "coef_", None)
    several = np.ndim(coef) == 2 and not hasattr(fitted, "classes_")
    names = [f"prediction {j}" for j in range(len(coef))] if several else ["prediction"]
    names += [f"probability of {label}" for label in fitted.classes_.tolist()] if proba else []
    lines, count = _lines(fitted, data, sep, header, proba, quiet or json), 0
    if out is None:
        rows = list(lines)
        if json:
            predictions = [row[0] for row in rows] if len(names) == 1 else rows
            show_json({"rows": len(rows), "columns": names, "predictions": predictions})
        else:
            typer.echo("\n".join(",".join(map(str, row)) for row in rows))
        return
    with text_file(out, [data, model], force) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for row in lines:
            writer.writerow([safe_cell(cell) for cell in row])
            count += 1
    with reporting(out):
        if json:
            show_json({"rows": count, "columns": names, "out": str(out)})
        elif not quiet:
            typer.echo(f"{count:,} predictions written to {out}")


def loaded(path: Path) -> Any:
    """The model in a folder."""
    from projfree.estimators import load

    if not path.is_dir():
        raise FileNotFoundError(f"{str(path)!r} is no folder with a model; projfree fit writes one.")
    return load(path)


def _lines(
    fitted: Any, path: Path, sep: str | None, header: bool | None, proba: bool, quiet: bool
) -> Iterator[list[Any]]:
    """Predictions for each row of a table, a part of the table at a time."""
    ids = _ids(fitted)
    encoding = pack_encoder(fitted[0]) if hasattr(fitted, "named_steps") else {"medians": None, "text": []}
    levels, impute = dict(encoding["text"]), encoding["medians"] is not None
    if kind_of(path) in (".parquet", ".npy"):
        frames = chunks_of(path)
    else:
        frame, remark = read_table(path, sep, header, [*levels, *ids])
        note(remark, quiet or not remark)
        for name in ids:
            column = _id_column(frame, name, path)
            frame[column] = frame[column] if ids[name] else as_ids(frame[column])
        frames = iter([frame])
    for frame in frames:
        X = _features(fitted, frame, path, list(levels), impute)
        for name, known in levels.items():
            unseen = int((~np.isin(X[name].to_numpy(dtype=str), known)).sum())
            have = "row has" if unseen == 1 else "rows have"
            note(
                f"{unseen:,} {have} a level of column {name!r} that the fit had not seen; it counts as none.",
                quiet or not unseen,
            )
        table = np.asarray(fitted.predict(X))
        predicted = [[value] for value in table.tolist()] if table.ndim == 1 else table.tolist()
        shares = fitted.predict_proba(X).tolist() if proba else [[]] * len(predicted)
        yield from (row + more for row, more in zip(predicted, shares, strict=True))


def _ids(fitted: Any) -> dict[str, bool]:
    """The columns of users and items of a completion, and whether their ids are text."""
    if not hasattr(fitted, "user_ids_"):
        return {}
    kinds = (fitted.user_ids_.dtype.kind, fitted.item_ids_.dtype.kind)
    return {str(name): kind not in "iufb" for name, kind in zip(fitted.columns[:2], kinds, strict=True)}


def _id_column(frame: Any, name: str, path: Path) -> str:
    """The column of users or items, by the name or the number that it had in the fit."""
    try:
        return column_of(list(frame.columns), name, "--columns", path)
    except ValueError:
        raise ValueError(f"{str(path)!r} has no column {name!r}, which the model was fitted on.") from None


def _features(fitted: Any, frame: Any, path: Path, text: list[str], impute: bool) -> Any:
    """The columns that the model was fitted on, in its order."""
    if hasattr(fitted, "user_ids_"):
        return frame[[_id_column(frame, str(name), path) for name in fitted.columns[:2]]]
    names = getattr(fitted, "feature_names_in_", None)
    if names is None:
        if frame.shape[1] != fitted.n_features_in_:
            raise ValueError(
                f"{str(path)!r} must have {fitted.n_features_in_} columns, the features of the model, which have no "
                f"names, got {frame.shape[1]}; leave out others, such as the target."
            )
        return features(frame, ()).to_numpy()
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise ValueError(f"{str(path)!r} has no column {missing[0]!r}, which the model was fitted on.")
    return features(frame[list(names)], text, impute=impute)
