"""`projfree fit`: a linear model over a ball, from a table to a folder."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import typer

from projfree.checks import Array, shown
from projfree.cli import options
from projfree.cli.output import DONE, SHORT, check_place, guarded, note, reporting, save_model, show_fields, show_json
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


@guarded
def fit(
    data: options.Data,
    target: options.Target,
    out: options.ModelFolder,
    loss: options.LossName = "auto",
    quantile: options.Level = None,
    norm: options.Norm = "lp",
    p: options.Exponent = None,
    q: options.AcrossGroups = None,
    feature_groups: options.FeatureGroups = None,
    radius: options.Radius = None,
    C: options.InverseStrength = None,
    alpha: options.Alpha = None,
    cv: options.Folds = None,
    standardize: options.Standardize = None,
    intercept: options.Intercept = True,
    drop: options.Drop = None,
    impute: options.Impute = None,
    one_hot: options.OneHot = "auto",
    sep: options.Sep = None,
    header: options.Header = None,
    tol: options.Tol = 1e-6,
    max_iter: options.MaxIter = 10_000,
    time_limit: options.TimeLimit = None,
    hold_out: options.HoldOut = 0.2,
    seed: options.Seed = 0,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Fit a linear model whose coefficients lie in a ball, and report how far from optimal it can be.

    The score is that of a fit without the rows held out; the model that is saved is fitted on all rows.
    """
    check_place(out, [data], force, "model")
    size, exponents = given_size(radius, C, alpha, cv), exponents_of(p)
    rows = read_rows(data, target, loss=loss, drop=drop or (), sep=sep, header=header, impute=impute, one_hot=one_hot)
    for remark in rows.remarks:
        note(remark, quiet or json)
    settings = {"norm": norm, "q": q, "standardize": standardize, "fit_intercept": intercept, "quantile": quantile}
    settings |= {"tol": tol, "max_iter": max_iter, "time_limit": time_limit, "random_state": seed}
    settings["verbose"] = 2 if verbose else 0

    def fitted(on: Array, size: dict[str, float], exponents: list[float | None], folds: int | None) -> tuple[Any, Any]:
        encoder = rows.encoder(on)
        model = estimator(rows.loss, size, exponents, folds, groups_of(feature_groups, rows, encoder, data), settings)
        if not (verbose or quiet or json):
            bar = ProgressBar(label=f"fit {data.name}", transient=True)
            model.set_params(**({"verbose": 1} if folds else {"callbacks": (bar,)}))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the status is reported
            return model.fit(*rows.part(on, encoder)), encoder

    train, test = split(len(rows), hold_out, seed)
    model, encoder = fitted(train, size, exponents, None if size else cv or FOLDS)
    chosen = None if size else {"p": model.p_, "cv_score": model.best_score_}
    score = None
    if len(test):
        enough = len(test) > 1 or score_of(rows.loss) == "accuracy"  # one target explains no variation
        score = float(model.score(*rows.part(test, encoder))) if enough else None
        settings["standardize"] = settings["standardize"] if size or standardize is not None else True
        final = size or {"radius": model.radius_ or ZERO_RADIUS}  # the best model may be the intercept alone
        model, encoder = fitted(np.arange(len(rows)), final, [model.p_] if chosen else exponents, None)
    if rows.labels is not None:
        model.classes_ = rows.labels
    save_model(model, out, [data], force, encoder)
    record = _record(model, rows, chosen) | {"score": score, "held_out_rows": len(test), "model": str(out)}
    with reporting(out):
        if json:
            show_json(record)
        elif not quiet:
            show_fields(str(model.result_.status), _fields(record), good=model.result_.status.converged)
    raise typer.Exit(DONE if model.result_.status.converged else SHORT)


def given_size(radius: float | None, C: float | None, alpha: float | None, cv: int | None = None) -> dict[str, float]:
    """The one of --radius, --C and --alpha that is given, if any: without one, cross-validation chooses the radius."""
    size = {name: v for name, v in (("radius", radius), ("C", C), ("alpha", alpha)) if v is not None}
    if len(size) > 1:
        raise ValueError(f"--{' and --'.join(size)} say the same in different ways; give one of them.")
    for name, value in size.items():
        if cv is not None:
            raise ValueError(f"--cv chooses the radius; leave out --{name}, or leave out --cv.")
        if not 0 < value < math.inf:
            raise ValueError(
                f"--{name} must be a positive number, got {value:g}; leave it out to have the radius chosen."
            )
    return size


def exponents_of(text: str | None) -> list[float | None]:
    """The exponents of --p: one, that of the norm, or those from which cross-validation chooses."""
    if text is None:
        return [None]
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--p must be a number of at least 1, or several as 1,1.5,2, got {shown(text)}.") from None


def estimator(
    loss: str, size: dict[str, float], p: list[float | None], folds: int | None, groups: Any, settings: dict[str, Any]
) -> Any:
    """The estimator of the options; with ``folds``, the one that chooses the radius by cross-validation."""
    from projfree import estimators

    classes = loss in options.CLASSES
    if ("alpha" if classes else "C") in size:
        raise ValueError(f"--alpha is for numbers and --C for classes, and the loss here is {loss}.")
    if len(p) > 1 and not folds:
        raise ValueError(
            "--p must be one number with --radius, --C or --alpha; leave these out to choose among several."
        )
    if settings["q"] is not None and settings["norm"] != "group":
        raise ValueError("--q is for --norm group.")
    if settings["quantile"] is not None and loss != "quantile":
        raise ValueError(f"--quantile is for --loss quantile, got --loss {loss}.")
    given = {name: value for name, value in settings.items() if name != "quantile" or value is not None}
    given["standardize"] = bool(folds) if given["standardize"] is None else given["standardize"]
    name = "ConstrainedClassifier" if classes else "ConstrainedRegressor"
    if folds:
        return getattr(estimators, name + "CV")(loss, p=p, cv=folds, feature_groups=groups, **given)
    return getattr(estimators, name)(loss, p=p[0], feature_groups=groups, **size, **given)


def groups_of(text: str | None, rows: Rows, encoder: Any, path: Path) -> list[int] | None:
    """The group of each feature; the levels of a column of text belong to the group of their column."""
    if text is None:
        return None
    if rows.streamed:
        sources = list(rows.X.feature_names or map(str, range(rows.X.shape(())[0])))
    elif encoder is None:
        sources = list(rows.X.columns)
    else:
        levels = dict(pack_encoder(encoder)["text"])
        sources = [name for name in rows.X.columns if name not in levels]
        sources += [name for name, known in levels.items() for _ in known]
    columns = list(dict.fromkeys(sources))
    group = {name: j for j, name in enumerate(columns)}
    named: set[str] = set()
    for part in [] if text == "auto" else text.split(";"):
        names = [column_of(columns, name, "--feature-groups", path) for name in part.split(",")]
        if twice := [name for name in names if name in named]:
            raise ValueError(f"--feature-groups names the column {twice[0]!r} twice; give it one group.")
        named.update(names)
        group |= {name: group[names[0]] for name in names}
    numbered = {place: k for k, place in enumerate(sorted(set(group.values())))}
    return [numbered[group[name]] for name in sources]


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
        "value": result.value,
        "bound": result.bound,
        "gap": result.gap,
        "relative_gap": result.relative_gap,
        "iterations": result.n_iter,
        "passes": result.n_passes,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
        "radius": model.radius_,
        "p": norm_and_exponent(model.norm, chosen["p"] if chosen else model.p)[1],
        "solver": repr(result.solver),
        "rows": len(rows),
        "features": model.n_features_in_,
        "score_kind": score_of(rows.loss),
        "cv_score": chosen["cv_score"] if chosen else None,
    }


def _fields(record: dict[str, Any]) -> dict[str, str | None]:
    """The record as text."""
    convex, searched, radius = record["bound"] is not None, record["cv_score"] is not None, record["radius"]
    gap = f"{record['gap']:.3g}  (relative {record['relative_gap']:.2g})"
    compiled = f", and {record['compile_seconds']:.3g} s to compile" if record["compile_seconds"] > 0 else ""
    work = f"{record['iterations']} iterations, {record['passes']:.4g} passes, {record['seconds']:.3g} s{compiled}"
    score = None if record["score"] is None else f"{record['score']:.4f}, by a fit without {record['held_out_rows']:,}"
    return {
        "loss": record["loss"],
        "value": f"{record['value']:.8g}",
        "lower bound": f"{record['bound']:.8g}" if convex else None,
        "certified gap": gap if convex else None,
        "Frank-Wolfe gap": None if convex else f"{gap}; the loss is not convex, so there is no bound",
        "chosen": f"p = {record['p']:g}, radius {radius:.6g} by cross-validation" if searched else None,
        "radius": f"{radius:.6g}" if not searched and radius is not None else None,
        "work": work,
        "solver": record["solver"],
        "rows": f"{record['rows']:,}, {record['features']:,} features",
        f"held-out {SCORES[record['score_kind']]}": f"{score} of the rows" if score else None,
        "model": record["model"],
    }
