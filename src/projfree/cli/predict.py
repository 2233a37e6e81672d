"""`projfree predict`: apply a saved model to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from typer import Option

from projfree.cli import options
from projfree.cli.output import Report, check_place, command, remark, write_csv
from projfree.cli.tables import as_ids, features, read_table
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
        check_place(out, [data, model], printing.force)
    fitted = loaded(model)
    if proba and not hasattr(fitted, "predict_proba"):
        raise ValueError(f"--proba needs a model of classes whose loss has probabilities, and {str(model)!r} is none.")
    frame = _predictions(fitted, _features_of(fitted, data, layout), proba)
    record: dict[str, Any] = {"rows": len(frame), "columns": list(frame)}
    if out is not None:
        count = write_csv([frame], out, [data, model], printing.force)
        return Report(record | {"out": str(out)}, f"{count:,} predictions written to {out}", out)
    record["predictions"] = frame.to_numpy().tolist() if len(frame.columns) > 1 else frame.iloc[:, 0].tolist()
    return Report(record, frame.to_csv(header=False, index=False, lineterminator="\n").rstrip("\n"))


def loaded(path: Path) -> Any:
    """The model in a folder."""
    from projfree.estimators import load

    if not path.is_dir():
        raise FileNotFoundError(f"{str(path)!r} is no folder with a model; projfree fit writes one.")
    return load(path)


def _predictions(fitted: Any, X: Any, proba: bool) -> Any:
    """A column for each output, and one for the probability of each class if these are asked for."""
    table = np.asarray(fitted.predict(X))
    names = ["prediction"] if table.ndim == 1 else [f"prediction {j}" for j in range(table.shape[1])]
    frame = pd.DataFrame(table if table.ndim > 1 else table[:, None], columns=names)
    if proba:
        frame[[f"probability of {label}" for label in fitted.classes_.tolist()]] = fitted.predict_proba(X)
    return frame


def _features_of(fitted: Any, path: Path, layout: options.Layout) -> Any:
    """The columns of a table that the model was fitted on, in its order."""
    if hasattr(fitted, "user_ids_"):
        names = [str(name) for name in fitted.columns[:2]]
        frame = read_table(path, layout, names)
        known = zip(names, (fitted.user_ids_, fitted.item_ids_), strict=True)
        return pd.DataFrame({name: as_ids(frame[_column(frame, name, path)], like=ids) for name, ids in known})
    encoding = pack_encoder(fitted[0]) if hasattr(fitted, "named_steps") else {"medians": None, "text": []}
    levels, columns = dict(encoding["text"]), getattr(fitted, "feature_names_in_", None)
    frame = read_table(path, layout, list(levels))
    if columns is None:
        if frame.shape[1] != fitted.n_features_in_:
            raise ValueError(
                f"{str(path)!r} must have {fitted.n_features_in_} columns, the features of the model, which have no "
                f"names, got {frame.shape[1]}; leave out others, such as the target."
            )
        return features(frame, ()).to_numpy()
    frame = frame[[_column(frame, name, path) for name in columns]]
    X = features(frame, list(levels), impute=encoding["medians"] is not None)
    for name, known in levels.items():
        if unseen := int((~X[name].isin(known)).sum()):
            have = "row has" if unseen == 1 else "rows have"
            remark(f"{unseen:,} {have} a level of column {name!r} that the fit had not seen; it counts as none.")
    return X


def _column(frame: Any, name: str, path: Path) -> str:
    """The column of a table with a name of the fit."""
    if name not in frame:
        raise ValueError(f"{str(path)!r} has no column {name!r}, which the model was fitted on.")
    return name
