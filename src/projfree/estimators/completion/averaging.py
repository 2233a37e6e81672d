"""Several models whose mean is predicted: fits with other seeds, powers and weights, a certificate for each."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Self, cast

import numpy as np

from projfree.deadline import countdown
from projfree.estimators.completion.certifying import check_limit
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.members import Certified, Member
from projfree.estimators.completion.stages import SHARE, Stages
from projfree.estimators.completion.stopping import Tally, limited
from projfree.run.checkpoint import Written
from projfree.run.fingerprints import ANEW, fingerprint, refuse_other
from projfree.solvers.alternating import Alternating

#: How the models differ from what is asked for: what is added to the power of the frequencies, and what the weight of
#: implicit features is multiplied by. A further model begins again, with another seed.
VARIANTS = ((0.0, 1.0), (-0.15, 0.5), (0.15, 2.0))


class Averaging(Stages):
    """The part of `MatrixCompletion` that fits one model, or several to average.

    A fit works on copies of the estimator, which gets what they have found at the end, all at once: a fit that raises
    leaves the estimator as it was.
    """

    n_models: int
    members_: tuple[Member, ...]

    @property
    def certificates_(self) -> tuple[Certified, ...]:
        """The certificate of each model."""
        names = [field.name for field in fields(Certified)]
        members = self._members or (Member.of(self),)
        return tuple(Certified(**{name: getattr(one, name) for name in names}) for one in members)

    def _unfitted(self) -> Self:
        """A copy without a model, to be given ratings."""
        one = copy.copy(self)
        for name in ("factors_", "members_"):
            vars(one).pop(name, None)
        return one

    def _models(self) -> list[Any]:
        """The models that are averaged, as estimators of their own with what they share: itself where it is alone."""
        models = [self._variant(k) for k in range(len(self._members))]
        for one, member in zip(models, self._members, strict=True):
            member.hold(one)
        return models or [self]

    @property
    def _members(self) -> tuple[Member, ...]:
        """What is kept of several models, which may be fewer than were asked for; none where one was fitted."""
        members: tuple[Member, ...] = vars(self).get("members_", ())
        return members

    def _variant(self, k: int) -> Any:
        """One of several models: a copy with settings of its own."""
        more, times = VARIANTS[k % len(VARIANTS)]
        one = self._unfitted()
        one.settings_ = replace(self.settings_, power=max(self.settings_.power + more, 0.0))
        one.radius = self.radius if k == 0 else None
        one._spread, one._tally, one._seed = times, Tally(), vars(self).get("_seed", 0) + k
        one.implicit_ = one.weights[0] if len(one.weights) == 1 else 0.0
        return one

    def _fit_models(self, fresh: Self, begun: Sequence[Factors] = ()) -> Self:
        """Fit each model to the ratings of a copy: from factors, from a checkpoint where there is one, or from nothing.

        What was fitted is taken over also where the fit is interrupted; where it began from factors, if that is so of
        all models.
        """
        last, left = self._models() if begun else [], countdown(self.time_limit)
        count = len(last) or self.n_models
        models: list[Any] = [fresh] if count == 1 else [fresh._variant(k) for k in range(count)]
        written = None if begun else self._written()
        several = count > 1 or (written is not None and written.note.get("members"))
        origin = fresh._origin() if several and self.checkpoint is not None and not begun else {}
        done = [] if written is None else _finished(written, origin)
        try:
            for k, one in enumerate(models):
                if k < len(done):
                    done[k].hold(one)
                    continue
                if begun:
                    one.implicit_, one.strength_, one.n_sweeps_ = (
                        getattr(last[k], name) for name in ("implicit_", "strength_", "n_sweeps_")
                    )
                    one.settings_ = replace(one.settings_, power=last[k].settings_.power)
                seconds = left()
                one.time_limit = None if seconds is None else seconds / (len(models) - k)
                with limited(one.time_limit):
                    one._fit(
                        begun[k] if begun else None,
                        self._strength_for(models, k) if not begun else one.strength_,
                        written if k == len(done) else None,
                        _noted(models[:k], origin),
                    )
        finally:
            found = [one for one in models if hasattr(one, "factors_")]
            if found and (not begun or len(found) == len(models)):
                self._gather(fresh, found)
        return self

    def _origin(self) -> dict[str, str]:
        """What tells the problem of several models, before anything is chosen, from others."""
        problem = self._problem(self._training())
        ball = problem.unit if self.radius is None else problem.ball(float(self.radius))
        return {**fingerprint(problem.f, ball, Alternating(self.rank)), "implicit": str(self.implicit)}

    def _strength_for(self, models: list[Any], k: int) -> float | None:
        """With a given radius, which is that of the first model, the others have its penalty."""
        if self.radius is None or k == 0:
            return None
        own, first = (model._problem(model._training()).strongest() for model in (models[k], models[0]))
        found = models[0].strength_ / first
        return float(own * (found if np.isfinite(found) else SHARE))  # no sweep was done where time is up

    def _gather(self, fresh: Any, models: list[Any]) -> None:
        """Take over what a copy knows of the ratings, and the models.

        Of what is proved it is that of the model with the largest gap; one of which nothing is proved has the largest.
        """
        worst = max(models, key=lambda one: np.nan_to_num(one.relative_gap_, nan=np.inf))
        found: dict[str, Any] = {"members_": ()}
        if models[0] is not fresh:
            found = Member.of(worst).attributes | {"members_": tuple(Member.of(one) for one in models)}
            found |= {"result_": worst.result_, "n_iter_": max(one.n_iter_ for one in models)}
            found |= {"factors_": Factors.mean([one.factors_ for one in models])}
        settings = cast("Any", self).get_params(deep=False)
        vars(self).update({name: value for name, value in vars(fresh).items() if name not in settings} | found)

    def certify_to(self, tol: float, *, time_limit: float | None = None) -> Self:
        """Go on until the relative gap is at most ``tol``, or a limit is reached; with several models, of each.

        Large matrices get more components first, as many as sweeps can bear; where that is not enough, the convex
        solver goes on. However it ends, the value is no larger than before, and the bound no smaller.
        """
        check_limit(time_limit)
        if not self._members:
            return super().certify_to(tol, time_limit=time_limit)
        models, left = self._models(), countdown(time_limit)
        try:
            for k, one in enumerate(models):
                seconds = left()
                one.certify_to(tol, time_limit=None if seconds is None else seconds / (len(models) - k))
        finally:
            self._gather(self, models)
        return self


def _noted(models: list[Any], origin: dict[str, str]) -> dict[str, Any]:
    """What a checkpoint holds of finished models, and what they belong to."""
    if not models or not origin:
        return {}
    from projfree.estimators.saving import encode

    return {"members": [encode(Member.of(one), "checkpoint") for one in models], "origin": origin}


def _finished(written: Written, origin: dict[str, str]) -> list[Member]:
    """The models that were finished when a checkpoint was written; raises where they belong to another problem."""
    from projfree.estimators.saving import decode

    members = [decode(member) for member in written.note.get("members", ())]
    if members:
        refuse_other(written.name, written.note.get("origin", {}), origin, ANEW)
    return members
