"""What a fit has found, for people and for machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from projfree.cli.models import score_kind
from projfree.cli.output import show_fields, show_json, writable

#: The scores as they are shown.
SHOWN = {"accuracy": "accuracy", "r2": "R²", "d2": "D² (explained deviance)"}


def report(
    model: Any, score: float | None, out: Path, loss: str, n_train: int, n_test: int, *, json: bool, quiet: bool
) -> None:
    """Print value, bound, gap, work and score."""
    if json:
        show_json(_record(model, score, out, loss, n_train, n_test))
    elif not quiet:
        style = "bold green" if model.result_.status.converged else "bold yellow"
        show_fields(str(model.result_.status), _fields(model, score, out, loss, n_train, n_test), style)


def _record(model: Any, score: float | None, out: Path, loss: str, n_train: int, n_test: int) -> dict[str, Any]:
    result = model.result_
    return {
        "status": result.status.name.lower(),
        "loss": loss,
        "value": result.value,
        "bound": result.bound,
        "relative_gap": result.relative_gap,
        "iterations": result.n_iter,
        "passes": result.n_passes,
        "seconds": result.seconds,
        "compile_seconds": result.compile_seconds,
        "radius": model.radius_,
        "p": getattr(model, "p_", model.p),
        "solver": repr(result.solver),
        "rows": n_train,
        "held_out_rows": n_test,
        "features": model.n_features_in_,
        "score": score,
        "score_kind": score_kind(loss),
        "cv_score": getattr(model, "best_score_", None),
        "model": str(out),
    }


def _fields(model: Any, score: float | None, out: Path, loss: str, n_train: int, n_test: int) -> dict[str, str]:
    result, kind, searched = model.result_, SHOWN[score_kind(loss)], hasattr(model, "best_score_")
    gap = f"{result.gap:.3g}  (relative {result.relative_gap:.2g})"
    bounded = {} if result.bound is None else {"lower bound": f"{result.bound:.8g}", "certified gap": gap}
    free = {"Frank-Wolfe gap": f"{gap}; the loss is not convex, so there is no bound"} if result.bound is None else {}
    compiled = f", and {result.compile_seconds:.3g} s to compile" if result.compile_seconds > 0 else ""
    chosen = {"chosen": f"p = {model.p_:g}, radius {model.radius_:.6g} by cross-validation"} if searched else {}
    return {
        "loss": loss,
        "value": f"{result.value:.8g}",
        **bounded,
        **free,
        **(chosen or {"radius": f"{model.radius_:.6g}" if model.radius_ is not None else "-"}),
        "work": f"{result.n_iter} iterations, {result.n_passes:.4g} passes, {result.seconds:.3g} s{compiled}",
        "solver": repr(result.solver),
        "rows": f"{n_train:,} to fit, {n_test:,} held out, {model.n_features_in_:,} features",
        **({f"held-out {writable(kind, kind.replace('²', '2'))}": f"{score:.4f}"} if score is not None else {}),
        "model": str(out),
    }
