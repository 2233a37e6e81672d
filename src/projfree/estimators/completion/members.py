"""What is kept of each of several models: its factors, and what is proved of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from projfree.estimators.completion.factors import Factors


@dataclass(frozen=True)
class Certified:
    """What is proved of one model: its value, and a bound on the minimum over the ball of its radius.

    Attributes
    ----------
    weight_power, implicit : float
        The power of the frequencies in its norm, and its weight of implicit features.
    radius, norm : float
        The radius, and the norm of the answer.
    value, bound, relative_gap : float
        The objective, a lower bound on its minimum, and their relative distance; NaN where not certified.
    coarse : bool
        Whether the bound was kept coarse to save time.
    """

    weight_power: float
    implicit: float
    radius: float
    norm: float
    value: float
    bound: float
    relative_gap: float
    coarse: bool


@dataclass(frozen=True)
class Member(Certified):
    """One of several models: all that a fit leaves of it."""

    factors: Factors
    strength: float
    n_iter: int
    n_sweeps: int = 0

    @classmethod
    def of(cls, model: Any) -> Member:
        """What a fitted estimator holds."""
        held = {field.name: getattr(model, f"{field.name}_") for field in fields(cls) if field.name != "weight_power"}
        return cls(weight_power=model.settings_.power, **held)

    @property
    def attributes(self) -> dict[str, Any]:
        """What an estimator that is this one has."""
        names = [field.name for field in fields(self) if field.name != "weight_power"]
        return {"result_": None, **{f"{name}_": getattr(self, name) for name in names}}

    def hold(self, model: Any) -> None:
        """Let an estimator be this one."""
        vars(model).update(self.attributes | {"settings_": replace(model.settings_, power=self.weight_power)})
