"""Several models whose mean is predicted: fits with other seeds, powers and weights, a certificate for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np

from projfree.deadline import countdown
from projfree.estimators.completion.certifying import check_limit
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.held_out import SHARED
from projfree.estimators.completion.members import Certified, Member
from projfree.estimators.completion.stages import SHARE, Stages
from projfree.estimators.completion.stopping import Tally, limited
from projfree.run.checkpoint import Written

#: How the models differ from what is asked for: what is added to the power of the frequencies, and what the weight of
#: implicit features is multiplied by. A further model begins again, with another seed.
VARIANTS = ((0.0, 1.0), (-0.15, 0.5), (0.15, 2.0))


class Averaging(Stages):
    """The part of `MatrixCompletion` that fits one model, or several to average."""

    n_models: int
    members_: tuple[Member, ...]

    @property
    def certificates_(self) -> tuple[Certified, ...]:
        """The certificate of each model."""
        names = [field.name for field in fields(Certified)]
        members = self.members_ if self.n_models > 1 else (Member.of(self),)
        return tuple(Certified(**{name: getattr(one, name) for name in names}) for one in members)

    def _single(self, p: float | None = None) -> Any:
        """An estimator with the same settings."""
        raise NotImplementedError

    def _models(self) -> list[Any]:
        """The models that are averaged, as estimators of their own with what they share: itself where it is alone."""
        if self.n_models == 1:
            return [self]
        return [self._model(k) for k in range(self.n_models)]

    def _model(self, k: int) -> Any:
        more, times = VARIANTS[k % len(VARIANTS)]
        one = self._single().set_params(n_models=1, callbacks=self.callbacks)
        one.set_params(weight_power=max(self.weight_power + more, 0.0), checkpoint=self.checkpoint)
        one.radius = self.radius if k == 0 else None
        held = vars(self)
        for name in SHARED:
            if name in held:
                setattr(one, name, held[name])
        one._spread, one._tally, one._seed = times, Tally(), held.get("_seed", 0) + k
        one.implicit_ = one.weights[0] if len(one.weights) == 1 else 0.0
        if k < len(held.get("members_", ())):
            self.members_[k].hold(one)
        return one

    def _fit_models(self, begun: Sequence[Factors] = ()) -> Self:
        """Fit each model, from factors where they are given, or from a checkpoint where there is one."""
        if not begun:
            vars(self).pop("members_", None)
        models, left = self._models(), countdown(self.time_limit)
        written = None if begun else self._written()
        done = [] if written is None else _finished(written)
        try:
            for k, one in enumerate(models):
                if k < len(done):
                    done[k].hold(one)
                    continue
                seconds = left()
                one.time_limit = None if seconds is None else seconds / (len(models) - k)
                with limited(one.time_limit):
                    one._fit(
                        begun[k] if begun else None,
                        self._strength_for(models, k) if not begun else one.strength_,
                        written if k == len(done) else None,
                        tuple(Member.of(other) for other in models[:k]),
                    )
        finally:
            self._gather([one for one in models if hasattr(one, "factors_")])
        return self

    def _strength_for(self, models: list[Any], k: int) -> float | None:
        """With a given radius, which is that of the first model, the others have its penalty."""
        if self.radius is None or k == 0:
            return None
        own, first = (model._problem(model._training()).strongest() for model in (models[k], models[0]))
        found = models[0].strength_ / first
        return float(own * (found if np.isfinite(found) else SHARE))  # no sweep was done where time is up

    def _gather(self, models: list[Any]) -> None:
        """Take the models over: of what is proved, that with the largest gap."""
        if not models or models[0] is self:
            return
        self.members_ = tuple(Member.of(one) for one in models)
        worst = max(models, key=lambda one: np.nan_to_num(one.relative_gap_, nan=-np.inf))
        Member.of(worst).hold(self)
        self.result_, self.n_iter_ = worst.result_, max(one.n_iter_ for one in models)
        self.factors_ = Factors.mean([one.factors_ for one in models])

    def certify_to(self, tol: float, *, time_limit: float | None = None) -> Self:
        """Go on until the relative gap is at most ``tol``, or a limit is reached; with several models, of each.

        Large matrices get more components first, as many as sweeps can bear; where that is not enough, the convex
        solver goes on. However it ends, the value is no larger than before, and the bound no smaller.
        """
        check_limit(time_limit)
        if self.n_models == 1:
            return super().certify_to(tol, time_limit=time_limit)
        models, left = self._models(), countdown(time_limit)
        for k, one in enumerate(models):
            seconds = left()
            one.certify_to(tol, time_limit=None if seconds is None else seconds / (len(models) - k))
        self._gather(models)
        return self


def _finished(written: Written) -> list[Member]:
    """The models that were finished when a checkpoint was written."""
    from projfree.estimators.saving import decode

    return [decode(member) for member in written.note.get("members", ())]
