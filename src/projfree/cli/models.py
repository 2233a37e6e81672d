"""From options and rows to an estimator: the one place that knows how the estimators are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.cli.file_rows import FileRows, groups_of
from projfree.cli.options import CLASSES
from projfree.cli.streaming import StreamedRows
from projfree.losses import BY_NAME

AnyRows = FileRows | StreamedRows


@dataclass(frozen=True)
class Settings:
    """The options of a model."""

    norm: str
    p: list[float]
    q: float | None
    radius: float | None
    tol: float
    #: None to scale the features where a search chooses the radius.
    standardize: bool | None
    intercept: bool
    feature_groups: str | None
    cv: int = 0
    #: Parameters of the estimators by their own names.
    more: Any = ()

    def check(self) -> None:
        """Raise where options contradict each other."""
        if self.cv == 1 or self.cv < 0:
            raise ValueError(f"--cv must be 0 or at least 2, got {self.cv}.")
        if self.cv and self.radius is not None:
            raise ValueError("--cv chooses the radius; leave out --radius, or leave out --cv.")
        if self.feature_groups is not None and self.norm != "group":
            raise ValueError("--feature-groups is for --norm group.")
        if self.q is not None and self.norm != "group":
            raise ValueError("--q is for --norm group.")


def model_of(settings: Settings, rows: AnyRows, path: Path) -> Any:
    """The estimator for rows whose encoding is known, not yet fitted."""
    from projfree import estimators

    name = "ConstrainedClassifier" if rows.loss in CLASSES else "ConstrainedRegressor"
    kind = getattr(estimators, name + ("CV" if settings.cv else ""))
    size = {"cv": settings.cv, "p": settings.p} if settings.cv else {"radius": settings.radius, "p": settings.p[0]}
    groups = groups_of(settings.feature_groups, _sources(rows), path)
    return kind(
        rows.loss,
        norm=settings.norm,
        q=settings.q,
        tol=settings.tol,
        standardize=bool(settings.cv) if settings.standardize is None else settings.standardize,
        fit_intercept=settings.intercept,
        feature_groups=groups,
        **size,
        **dict(settings.more),
    )


def _sources(rows: AnyRows) -> list[str]:
    if isinstance(rows, FileRows):
        return rows.encoder.sources()
    return rows.source.columns or [str(j) for j in range(rows.source.d)]


def fit_rows(model: Any, rows: AnyRows, train: Array) -> Any:
    """The model fitted on some rows; the labels of classes are those of the file."""
    if isinstance(rows, FileRows):
        return model.fit(rows.part(train), rows.y[train])
    data, labels = rows.data(train)
    model.fit(data)
    if labels is not None:
        model.classes_ = labels
    return model


def with_encoder(model: Any, rows: AnyRows) -> Any:
    """What is saved: the model, after its encoder where it needs one."""
    if not isinstance(rows, FileRows) or rows.encoder.trivial:
        return model
    from sklearn.pipeline import Pipeline

    return Pipeline([("encoder", rows.encoder), ("model", model)])


def held_out_score(model: Any, rows: AnyRows, test: Array) -> float | None:
    """The model's own score on rows that the fit did not see; None where there are none, or too few for it."""
    if len(test) < (1 if score_kind(rows.loss) == "accuracy" else 2):  # one target explains no variation
        return None
    if isinstance(rows, FileRows):
        return float(model.score(rows.part(test), rows.y[test]))
    predicted = np.concatenate([model.predict(table) for _, table in rows.tables(test)])
    return _score_of(predicted, rows.y[test], rows.loss)


def score_kind(loss: str) -> str:
    """What the score of a model with this loss is called."""
    from projfree.estimators.deviance import has_deviance

    return "accuracy" if loss in CLASSES else "d2" if has_deviance(BY_NAME[loss]()) else "r2"


def _score_of(predicted: Array, y: Array, loss: str) -> float:
    """The same score from predictions that were made a chunk at a time."""
    from sklearn.metrics import accuracy_score, r2_score

    from projfree.estimators.deviance import explained_deviance

    kind = score_kind(loss)
    if kind == "d2":
        return explained_deviance(BY_NAME[loss](), y, np.log(predicted))
    return float({"accuracy": accuracy_score, "r2": r2_score}[kind](y, predicted))
