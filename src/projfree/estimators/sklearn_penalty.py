"""`alpha` and `C`: the penalties of scikit-learn as another way to say a radius."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from projfree.checks import positive, shown
from projfree.estimators.auto import RadiusChoice
from projfree.estimators.balls import own_norm
from projfree.estimators.penalised import flat_point, ridge_point
from projfree.objectives.base import SmoothFunction
from projfree.run import Result
from projfree.sets.base import ConstraintSet

if TYPE_CHECKING:
    from projfree.estimators.base import ConstrainedModel

#: What must be left alone for the penalised model to be that of scikit-learn, and its value then.
PLAIN = {"positive": False, "feature_groups": None, "free": None, "task": None}
#: The losses of scikit-learn's `PoissonRegressor` and `GammaRegressor`, whose penalty is a ridge.
MEANS = ("poisson", "gamma")
#: Where all coefficients are zero, the radius is this part of what would reduce the loss by its own size: no point of
#: such a ball has a smaller loss than zero, and zero is where the fit begins.
NOTHING = 1e-40


def check_penalty(model: ConstrainedModel) -> None:
    """Say what does not go together with a penalty."""
    assert model._penalty is not None
    name, value = model._penalty
    positive(name, value)
    if model.radius != "auto":
        raise ValueError(
            f"`{name}` is another way to say `radius`, got {value!r} and {shown(model.radius)}; leave one out."
        )
    losses = model._penalised_losses
    if not (isinstance(model.loss, str) and model.loss in losses):
        raise ValueError(
            f"`{name}` needs `loss` to be {' or '.join(map(repr, losses))}, which scikit-learn has with a penalty, got "
            f"{shown(model.loss)}; use `radius`."
        )
    if _kind(model) is None:
        raise ValueError(
            f"`{name}` needs {_known(model)}, got norm={model.norm!r}, p={model.p!r}, q={model.q!r}; use `radius`."
        )
    for setting, plain in PLAIN.items():
        if getattr(model, setting) is not plain and getattr(model, setting) != plain:
            raise ValueError(f"`{name}` does not go together with `{setting}`; use `radius`.")


def _known(model: Any) -> str:
    """The norms that scikit-learn penalises with this loss."""
    if model.loss in MEANS:
        return f"p=2 with loss={model.loss!r}"
    return "p=2, p=1, or `norm='group'` with p=2, q=1 and squares of several outputs"


def _kind(model: Any) -> str | None:
    """Whether the penalty is that of a ridge, of entries or of rows."""
    if model.norm == "lp" and model.p == 2:
        return "ridge"
    if model.norm == "lp" and model.p == 1 and model.loss not in MEANS:
        return "entries"
    rows = model.norm == "group" and model.p == 2 and model.q in (None, 1) and model.loss == "squared"
    return "rows" if rows else None


def penalised_radius(model: ConstrainedModel, f: SmoothFunction, ball: ConstraintSet, n: float) -> RadiusChoice:
    r"""The norm of scikit-learn's answer, and that answer.

    With n the sum of the weights and f the mean loss, `Ridge` minimises :math:`f + \tfrac\alpha n \|w\|_2^2`, `Lasso`
    and `MultiTaskLasso` :math:`f + 2\alpha\|w\|`, `PoissonRegressor` and `GammaRegressor`
    :math:`f + \tfrac\alpha2 \|w\|_2^2`, and `LogisticRegression` :math:`f + \tfrac1{2Cn}\|w\|_2^2` or
    :math:`f + \tfrac1{Cn}\|w\|_1`.
    """
    assert model._penalty is not None
    kind, value = _kind(model), float(model._penalty[1])
    squares = f.quadratic
    if kind == "ridge":
        w = ridge_point(f, ball, 2.0 * value / n if squares else value if model.loss in MEANS else 1.0 / (value * n))
    else:
        w = flat_point(f, 2.0 * value if squares else 1.0 / (value * n), rows=kind == "rows")
    radius = own_norm(ball, w)
    if not radius > 0.0:
        here = f.evaluate(f.point(w))
        steep = own_norm(ball, here.slope.gradient)
        radius = NOTHING * max(here.value, 1e-300) / steep if steep > 0.0 else 1.0
    return RadiusChoice(radius, np.asarray(w))


def at_zero(result: Result) -> Result:
    """The result at zero, where the ball is so small that no point of it has another value."""
    zero = np.zeros_like(result.w)
    return replace(result, w=zero, certificate=replace(result.certificate, w=zero))
