"""`projfree predict`: apply a saved model to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from typer import Option

from projfree.cli import options
from projfree.cli.output import Report, check_output, command, notify, write_csv
from projfree.cli.tables import read_table, to_features, to_ids
from projfree.estimators.encoding import pack_encoder

EPILOG = (
    "Examples:\n\nprojfree predict model new.csv --out predictions.csv\n\n"
    "projfree predict model new.csv --proba            # one line a row: the label and the probabilities"
)


@command
def predict(
    model: options.Model,
    data: options.Data,
    layout: options.Layout,
    printing: options.Writing,
    out: Annotated[
        Path | None, Option(help="A CSV file to write; by default the screen.", rich_help_panel="Output")
    ] = None,
    proba: Annotated[bool, Option("--proba", help="Add the probability of each class.")] = False,
) -> Report:
    """Predict for the rows of a table; columns that the model does not know are ignored."""
    if out is not None:
        check_output(out, [data, model], printing.force)
    fitted = load_model(model)
    if proba and not hasattr(fitted, "predict_proba"):
        raise ValueError(f"--proba needs a model of classes whose loss has probabilities, and {str(model)!r} is none.")
    frame = _predictions(fitted, _read_features(fitted, data, layout), proba)
    record: dict[str, Any] = {"rows": len(frame), "columns": list(frame)}
    if out is not None:
        count = write_csv([frame], out, [data, model], printing.force)
        return Report(record | {"out": str(out)}, f"{count:,} predictions written to {out}", out)
    record["predictions"] = frame.to_numpy().tolist() if len(frame.columns) > 1 else frame.iloc[:, 0].tolist()
    return Report(record, frame.to_csv(header=False, index=False, lineterminator="\n").rstrip("\n"))


def load_model(path: Path) -> Any:
    """Load a model from a folder, or raise FileNotFoundError."""
    from projfree.estimators import load

    if not path.is_dir():
        raise FileNotFoundError(f"{str(path)!r} is no folder with a model; projfree fit writes one.")
    return load(path)


def _predictions(fitted: Any, X: Any, proba: bool) -> Any:
    """Return a data frame with a column for each output, and with ``proba`` one for the probability of each class."""
    table = np.asarray(fitted.predict(X))
    names = ["prediction"] if table.ndim == 1 else [f"prediction {j}" for j in range(table.shape[1])]
    frame = pd.DataFrame(table if table.ndim > 1 else table[:, None], columns=names)
    if proba:
        frame[[f"probability of {label}" for label in fitted.classes_.tolist()]] = fitted.predict_proba(X)
    return frame


def _read_features(fitted: Any, path: Path, layout: options.Layout) -> Any:
    """Read the features of the model from a table, in the order of the fit."""
    if hasattr(fitted, "user_ids_"):
        names = [str(name) for name in fitted.columns[:2]]
        frame = read_table(path, layout, names)
        known = zip(names, (fitted.user_ids_, fitted.item_ids_), strict=True)
        return pd.DataFrame({name: to_ids(frame[_check_column(frame, name, path)], like=ids) for name, ids in known})
    encoding = pack_encoder(fitted[0]) if hasattr(fitted, "named_steps") else {"medians": None, "text": []}
    levels, columns = dict(encoding["text"]), getattr(fitted, "feature_names_in_", None)
    frame = read_table(path, layout, list(levels))
    if columns is None:
        if frame.shape[1] != fitted.n_features_in_:
            raise ValueError(
                f"{str(path)!r} must have {fitted.n_features_in_} columns, the features of the model, which have no "
                f"names, got {frame.shape[1]}; leave out others, such as the target."
            )
        return to_features(frame, ()).to_numpy()
    frame = frame[[_check_column(frame, name, path) for name in columns]]
    X = to_features(frame, list(levels), impute=encoding["medians"] is not None)
    for name, known in levels.items():
        if unseen := int((~X[name].isin(known)).sum()):
            have = "row has" if unseen == 1 else "rows have"
            notify(f"{unseen:,} {have} a level of column {name!r} that the fit had not seen; it counts as none.")
    return X


def _check_column(frame: Any, name: str, path: Path) -> str:
    """Return ``name`` if the table has this column, else raise ValueError."""
    if name not in frame:
        raise ValueError(f"{str(path)!r} has no column {name!r}, which the model was fitted on.")
    return name
