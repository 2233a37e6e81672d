"""`projfree fit`: fit a linear model to a table, and save it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from projfree.checks import Array
from projfree.cli import options
from projfree.cli.output import DONE, NOT_CONVERGED, Report, check_output, command, format_fields, save_model
from projfree.cli.tables import Samples, read_samples, resolve_column
from projfree.estimators.encoding import pack_encoder
from projfree.estimators.problem import ZERO_RADIUS, norm_and_exponent
from projfree.run import ProgressBar

EPILOG = (
    "Examples:\n\n"
    "projfree fit train.csv --target y --p 1.5 --radius 10 --out model\n\n"
    "projfree fit people.parquet --target income --cv 10 --out model --json\n\n"
    "projfree fit adult.data.gz --target -1 --out model   # text columns, '?', no header"
)
#: Default number of folds, as in scikit-learn.
FOLDS = 5
SCORES = {"accuracy": "accuracy", "r2": "R2", "d2": "D2 (explained deviance)"}


@dataclass(frozen=True)
class Run(options.Run):
    """Options for the run of a fit."""

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
    check_output(out, [data], printing.force, "model")
    size, exponents = linear.size(), linear.exponents()
    if size and run.cv is not None:
        raise ValueError(f"--cv chooses the radius; leave out --{min(size)}, or leave out --cv.")
    rows = read_samples(data, target, columns, linear.loss)
    more = {"max_iter": run.max_iter, "time_limit": run.time_limit, "random_state": run.seed}
    bar = ProgressBar(label=f"fit {data.name}", transient=True)

    def fit_rows(on: Array, size: dict[str, Any], p: list[float | None]) -> tuple[Any, Any]:
        """Fit a model and its encoder to some rows."""
        encoder = rows.encoder(on)
        model = make_estimator(linear, rows, encoder, size, p).set_params(**more, verbose=2 if run.verbose else 0)
        if not (run.verbose or printing.silent):
            model.set_params(**({"verbose": 1} if "cv" in size else {"callbacks": (bar,)}))
        return model.fit(*rows.subset(on, encoder)), encoder

    train, test = split_rows(len(rows.y), run.hold_out, run.seed)
    model, encoder = fit_rows(train, size or {"cv": run.cv or FOLDS}, exponents)
    chosen = None if size else {"p": model.p_, "cv_score": model.best_score_}
    score = None
    if len(test):
        enough = len(test) > 1 or score_name(rows.loss) == "accuracy"  # one target explains no variation
        score = float(model.score(*rows.subset(test, encoder))) if enough else None
        final = size or {"radius": model.radius_ or ZERO_RADIUS}  # the best model may be the intercept alone
        model, encoder = fit_rows(np.arange(len(rows.y)), final, [model.p_] if chosen else exponents)
    save_model(model, out, [data], printing.force, encoder)
    record = _record(model, rows, chosen) | {"score": score, "held_out_rows": len(test), "model": str(out)}
    return Report(record, _text(model, record), out, DONE if model.result_.status.converged else NOT_CONVERGED)


def make_estimator(
    linear: options.Linear, rows: Samples, encoder: Any, size: dict[str, Any], p: list[float | None]
) -> Any:
    """Build the estimator that the options define.

    Parameters
    ----------
    size : dict
        The radius or the penalty, or ``{"cv": folds}`` for an estimator that chooses the radius by cross-validation.
    p : list
        The exponents of the norm; cross-validation chooses one if there are several.
    """
    from projfree import estimators

    classes, search = rows.loss in options.CLASSIFICATION_LOSSES, "cv" in size
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
        feature_groups=group_labels(linear.feature_groups, rows, encoder),
        standardize=linear.standardizes(),
        fit_intercept=linear.intercept,
        tol=linear.tol,
        **({} if linear.quantile is None else {"quantile": linear.quantile}),
        **size,
    )


def group_labels(text: str | None, rows: Samples, encoder: Any) -> list[int] | None:
    """Return the group of each feature for ``--feature-groups``; the levels of a text column form one group."""
    if text is None:
        return None
    levels = {} if encoder is None else dict(pack_encoder(encoder)["text"])
    sources = [name for name in rows.X if name not in levels]
    sources += [name for name, known in levels.items() for _ in known]
    group = {name: j for j, name in enumerate(dict.fromkeys(sources))}
    parts = [] if text == "auto" else [part.split(",") for part in text.split(";")]
    parts = [[resolve_column(list(group), name, "--feature-groups", rows.path) for name in part] for part in parts]
    named = [name for part in parts for name in part]
    if twice := [name for name in named if named.count(name) > 1]:
        raise ValueError(f"--feature-groups names the column {twice[0]!r} twice; give it one group.")
    group |= {name: group[part[0]] for part in parts for name in part}
    groups: list[int] = np.unique([group[name] for name in sources], return_inverse=True)[1].tolist()
    return groups


def split_rows(n: int, share: float, seed: int) -> tuple[Array, Array]:
    """Split the indices of n rows at random into a training and a test part, each sorted."""
    order = np.random.default_rng(seed).permutation(n)
    held = round(share * n) if n > 4 else 0
    return np.sort(order[held:]), np.sort(order[:held])


# ---------------------------------------------------------------- the report


def score_name(loss: str) -> str:
    """Return the name of the default score for a loss."""
    return "accuracy" if loss in options.CLASSIFICATION_LOSSES else "d2" if loss in ("poisson", "gamma") else "r2"


def _record(model: Any, rows: Samples, chosen: dict[str, Any] | None) -> dict[str, Any]:
    """Collect the values that ``--json`` prints."""
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
        "score_kind": score_name(rows.loss),
        "cv_score": chosen["cv_score"] if chosen else None,
    }


def _text(model: Any, record: dict[str, Any]) -> str:
    """Format the result of the run and the values of the record as text."""
    searched, kind, score = record["cv_score"] is not None, SCORES[record["score_kind"]], record["score"]
    fields = {
        "loss": record["loss"],
        "chosen": f"p = {record['p']:g}, radius {record['radius']:.6g} by cross-validation" if searched else None,
        "radius": None if searched else record["radius"],
        "rows": f"{record['rows']:,}, {record['features']:,} features",
        "held out": score and f"{kind} {score:.4f}, by a fit without {record['held_out_rows']:,} of the rows",
        "model": record["model"],
    }
    return format_fields(repr(model.result_), fields)
