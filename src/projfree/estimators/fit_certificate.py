"""The certificate of a fitted estimator."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, fields
from typing import Any

from projfree.objectives import SmoothFunction
from projfree.run import Certificate, Verification


@dataclass(frozen=True, eq=False, repr=False)
class FitCertificate(Certificate):
    """The certificate of a fit, which takes the rows as the fit took them.

    What it proves is about prepared rows: scaled columns, and labels as the loss has them.
    """

    model: Any = None

    @classmethod
    def of(cls, model: Any) -> FitCertificate:
        """That of a fitted model, as it is now: what is fitted or set later has certificates of its own."""
        own = model.result_.certificate
        return cls(**{one.name: getattr(own, one.name) for one in fields(own)}, model=copy(model))

    def verify(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, objective: SmoothFunction | None = None
    ) -> Verification:
        """Check feasibility, value and bound, on the rows of the fit as `verify` of the model does."""
        if objective is not None or X is None:
            return super().verify(objective=objective)
        checked: Verification = self.model.verify(X, y, sample_weight)
        return checked
