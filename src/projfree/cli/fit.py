"""`projfree fit`: a linear model over a ball, from a table to a folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.cli import options
from projfree.cli.output import DONE, SHORT, Report, aligned, check_place, command, save_model
from projfree.cli.tables import Rows, column_of, read_rows
from projfree.estimators.encoding import pack_encoder
from projfree.estimators.problem import ZERO_RADIUS, norm_and_exponent
from projfree.run import ProgressBar

EPILOG = (
    "Examples:\n\n"
    "projfree fit train.csv --target y --p 1.5 --radius 10 --out model\n\n"
    "projfree fit people.parquet --target income --cv 10 --out model --json\n\n"
    "projfree fit adult.data.gz --target -1 --out model   # text columns, '?', no header"
)
#: Folds of a search unless --cv says otherwise, as in scikit-learn.
FOLDS = 5
SCORES = {"accuracy": "accuracy", "r2": "R2", "d2": "D2 (explained deviance)"}


@dataclass(frozen=True)
class Run(options.Run):
    """How a fit goes."""

    cv: int | None = options.option(
        None, "The folds that choose the radius, and one of several p; 5 by default.", min=2
    )
    max_iter: int = options.option(10_000, "The largest number of iterations.", min=1)
    verbose: bool = options.option(False, "A line for each iteration.", "--verbose", "-v")


@command
def fit(
    data: options.Data,
    target: options.Target,
    out: options.ModelFolder,
    columns: options.Columns,
    linear: options.Linear,
    run: Run,
    printing: options.Writing,
) -> Report:
    """Fit a linear model whose coefficients lie in a ball, and report how far from optimal it can be.

    The score is that of a fit without the rows held out; the model that is saved is fitted on all rows.
    """
    check_place(out, [data], printing.force, "model")
    size, exponents = linear.size(), linear.exponents()
    if size and run.cv is not None:
        raise ValueError(f"--cv chooses the radius; leave out --{min(size)}, or leave out --cv.")
    rows = read_rows(data, target, columns, linear.loss)
    more = {"max_iter": run.max_iter, "time_limit": run.time_limit, "random_state": run.seed}
    bar = ProgressBar(label=f"fit {data.name}", transient=True)

    def fitted(on: Array, size: dict[str, Any], p: list[float | None]) -> tuple[Any, Any]:
        encoder = rows.encoder(on)
        model = estimator(linear, rows, encoder, size, p).set_params(**more, verbose=2 if run.verbose else 0)
        if not (run.verbose or printing.silent):
            model.set_params(**({"verbose": 1} if "cv" in size else {"callbacks": (bar,)}))
        return model.fit(*rows.part(on, encoder)), encoder

    train, test = split(len(rows.y), run.hold_out, run.seed)
    model, encoder = fitted(train, size or {"cv": run.cv or FOLDS}, exponents)
    chosen = None if size else {"p": model.p_, "cv_score": model.best_score_}
    score = None
    if len(test):
        enough = len(test) > 1 or score_of(rows.loss) == "accuracy"  # one target explains no variation
        score = float(model.score(*rows.part(test, encoder))) if enough else None
        final = size or {"radius": model.radius_ or ZERO_RADIUS}  # the best model may be the intercept alone
        model, encoder = fitted(np.arange(len(rows.y)), final, [model.p_] if chosen else exponents)
    save_model(model, out, [data], printing.force, encoder)
    record = _record(model, rows, chosen) | {"score": score, "held_out_rows": len(test), "model": str(out)}
    return Report(record, _text(model, record), out, DONE if model.result_.status.converged else SHORT)


def estimator(linear: options.Linear, rows: Rows, encoder: Any, size: dict[str, Any], p: list[float | None]) -> Any:
    """The estimator of the options for some rows.

    Parameters
    ----------
    size : dict
        The radius or the penalty, or ``{"cv": folds}`` for the estimator that chooses the radius by cross-validation.
    p : list
        The exponent of the norm, or several for cross-validation to choose from.
    """
    from projfree import estimators

    classes, search = rows.loss in options.CLASSES, "cv" in size
    if ("alpha" if classes else "C") in size:
        raise ValueError(f"--alpha is for numbers and --C for classes, and the loss here is {rows.loss}.")
    if len(p) > 1 and not search:
        raise ValueError(
            f"--p must be one number where --{min(size)} is given, got {linear.p!r}; leave out one of the two."
        )
    if linear.q is not None and linear.norm != "group":
        raise ValueError("--q is for --norm group.")
    if linear.quantile is not None and rows.loss != "quantile":
        raise ValueError(f"--quantile is for --loss quantile, got --loss {rows.loss}.")
    cls = getattr(
        estimators, ("ConstrainedClassifier" if classes else "ConstrainedRegressor") + ("CV" if search else "")
    )
    return cls(
        rows.loss,
        p=p if search or len(p) > 1 else p[0],
        q=linear.q,
        norm=linear.norm,
        feature_groups=groups_of(linear.feature_groups, rows, encoder),
        standardize=linear.scaled(),
        fit_intercept=linear.intercept,
        tol=linear.tol,
        **({} if linear.quantile is None else {"quantile": linear.quantile}),
        **size,
    )


def groups_of(text: str | None, rows: Rows, encoder: Any) -> list[int] | None:
    """The group of each feature; the levels of a column of text belong to the group of their column."""
    if text is None:
        return None
    levels = {} if encoder is None else dict(pack_encoder(encoder)["text"])
    sources = [name for name in rows.X if name not in levels]
    sources += [name for name, known in levels.items() for _ in known]
    group = {name: j for j, name in enumerate(dict.fromkeys(sources))}
    parts = [] if text == "auto" else [part.split(",") for part in text.split(";")]
    parts = [[column_of(list(group), name, "--feature-groups", rows.path) for name in part] for part in parts]
    named = [name for part in parts for name in part]
    if twice := [name for name in named if named.count(name) > 1]:
        raise ValueError(f"--feature-groups names the column {twice[0]!r} twice; give it one group.")
    group |= {name: group[part[0]] for part in parts for name in part}
    groups: list[int] = np.unique([group[name] for name in sources], return_inverse=True)[1].tolist()
    return groups


def split(n: int, share: float, seed: int) -> tuple[Array, Array]:
    """Rows to fit and rows to score, each in order."""
    order = np.random.default_rng(seed).permutation(n)
    held = round(share * n) if n > 4 else 0
    return np.sort(order[held:]), np.sort(order[:held])


# ---------------------------------------------------------------- the report


def score_of(loss: str) -> str:
    """The score of the estimators with a loss."""
    return "accuracy" if loss in options.CLASSES else "d2" if loss in ("poisson", "gamma") else "r2"


def _record(model: Any, rows: Rows, chosen: dict[str, Any] | None) -> dict[str, Any]:
    result = model.result_
    return {
        "status": result.status.name.lower(),
        "loss": rows.loss,
        **{name: getattr(result, name) for name in ("value", "bound", "gap", "relative_gap")},
        "iterations": result.n_iter,
        "passes": result.n_passes,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
        "radius": model.radius_,
        "p": norm_and_exponent(model.norm, chosen["p"] if chosen else model.p)[1],
        "solver": repr(result.solver),
        "rows": len(rows.y),
        "features": model.n_features_in_,
        "score_kind": score_of(rows.loss),
        "cv_score": chosen["cv_score"] if chosen else None,
    }


def _text(model: Any, record: dict[str, Any]) -> str:
    """The result as the library prints it, and what the command adds."""
    searched, kind, score = record["cv_score"] is not None, SCORES[record["score_kind"]], record["score"]
    fields = {
        "loss": record["loss"],
        "chosen": f"p = {record['p']:g}, radius {record['radius']:.6g} by cross-validation" if searched else None,
        "radius": None if searched else record["radius"],
        "rows": f"{record['rows']:,}, {record['features']:,} features",
        "held out": score and f"{kind} {score:.4f}, by a fit without {record['held_out_rows']:,} of the rows",
        "model": record["model"],
    }
    return aligned(repr(model.result_), fields)
