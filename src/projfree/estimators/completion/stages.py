"""The stages of a fit: the choice of the radius, the sweeps, and the certificate."""

from __future__ import annotations

import copy
import math
import os
import warnings
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from projfree import persist
from projfree.checks import shown, stacklevel
from projfree.completion.alternating import weakest
from projfree.deadline import deadline, ignore_deadline, remaining
from projfree.estimators.completion.certifying import Certifying
from projfree.estimators.completion.choice import choose, most_sweeps
from projfree.estimators.completion.convex_gap import CertifiedModel, certified
from projfree.estimators.completion.convex_problem import ConvexProblem, Swept, settled
from projfree.estimators.completion.factors import Factors
from projfree.estimators.completion.stopping import BestSweep, products
from projfree.estimators.watching import given_callbacks
from projfree.run import Checkpoint, Status
from projfree.run.callbacks import announce
from projfree.run.checkpoint import SavedRun
from projfree.run.loop import REMEDY, refuse_other

#: With fewer ratings than this none are held out to choose the radius; the penalty follows no radius but its own share.
FEW = 20
#: A penalty that has fallen below this part of its first size says that the ball is wider than the ratings need.
WIDE = 1e-3
#: The share of the strongest penalty where there are too few ratings to choose one.
SHARE = 0.3
#: The part of a time limit that the choice of the radius may take.
CHOOSING = 0.5
#: Sweeps after a choice of the radius, and without one.
LAST, WHOLE = 3, 15


class Stages(Certifying):
    """The part of `MatrixCompletion` that fits the ratings it has been given."""

    rank: int
    tol: float | None
    n_iter_no_change: int
    checkpoint: str | os.PathLike[str] | Checkpoint | None
    n_iter_: int
    n_sweeps_: int

    def _unfitted(self) -> Self:
        """A copy without a model, to be given ratings."""
        one = copy.copy(self)
        vars(one).pop("factors_", None)
        return one

    def _take_fit(self, fresh: Self, model: Factors | None = None) -> Self:
        """Fit a copy that has been given ratings, and take over what it has found, all at once.

        A fit that raises before there is a model leaves the estimator as it was.
        """
        try:
            fresh._fit(model)
        finally:
            if hasattr(fresh, "factors_"):
                settings = cast("Any", self).get_params(deep=False)
                vars(self).update({name: value for name, value in vars(fresh).items() if name not in settings})
        return self

    def _fit(self, model: Factors | None) -> None:
        """Fit the ratings: from a model and with its penalty; else from a checkpoint, or from nothing."""
        state, written = None, self._written() if model is None else None
        strength = None if model is None else self.strength_
        if written is not None:
            strength, self.implicit_ = written.note.get("strength"), self._implicit_of(written)
            self._tally.go_on(int(written.note.get("tally", {}).get("sweeps", 0)))
        elif self.radius is None and strength is None:
            strength, self.implicit_, state = self._chosen()
        problem = self._problem(self._training())
        if state is not None:  # of fewer ratings, whose frequencies are others
            state = problem.restated(Factors.of(problem.f, state), self._seed)
        if model is not None:
            self._tally.go_on(self.n_sweeps_)
            state = problem.restated(model, self._seed, self.strength_)
        stopping = self._stopping(problem, written)
        begun = state is not None if written is None else bool(written.note.get("begun"))
        most = self.most_sweeps(begun) if stopping is None or not stopping.stopped else len(stopping.scores)
        note = {"strength": strength, "implicit": self.implicit_, "begun": begun, "tally": self._tally.note}
        note |= {} if stopping is None else {"stopping": stopping.note}
        # A later `fit` must not go on from the checkpoint of a `partial_fit`, so that none is written.
        checkpoint = self._checkpoint(note) if model is None else None
        own = [one for one in (self._tally, stopping, checkpoint) if one is not None]
        watching = [*own, *given_callbacks(self.callbacks)]
        settings: dict[str, Any] = {"callbacks": watching, "seed": self._seed, "written": written, "max_iter": most}
        announce(given_callbacks(self.callbacks), "sweeps", most)
        if self.radius is None:
            assert strength is not None
            swept = problem.penalised(self.rank, strength, state, **settings)
        else:
            swept = problem.within(self.rank, float(self.radius), state, **settings)
        self._finish(problem, swept, stopping)

    def _stopping(self, problem: ConvexProblem, written: SavedRun | None) -> BestSweep | None:
        """What stops the sweeps early, with what a checkpoint holds of it."""
        if self.held_out_ is None:
            return None
        stopping = BestSweep(self._judge(problem), self.n_iter_no_change)
        if written is not None:
            refuse_other(written.name, written.problem, {"shape": str(problem.f.shape)}, REMEDY)
            stopping.go_on(written.note.get("stopping", {}), problem, self._seed)
        return stopping

    def _implicit_of(self, written: SavedRun) -> float:
        """The weight of implicit features that a checkpoint was written with; raises where another one is asked for."""
        found = float(written.note.get("implicit", self.implicit_))
        if not isinstance(self.implicit, str):
            refuse_other(written.name, {"implicit": f"{found:g}"}, {"implicit": f"{self.weights[0]:g}"}, REMEDY)
        return found

    def most_sweeps(self, begun: bool) -> int:
        """The largest number of sweeps, from the state that a choice has left or from nothing."""
        return self.max_sweeps if self.max_sweeps is not None else LAST if begun else WHOLE

    def _chosen(self) -> tuple[float, float, Any]:
        """The strength, the weight and the state that held-out ratings like best.

        Where they are few or all the same, a share of the strongest, and implicit features only if asked for.
        """
        if len(self.ratings_) < FEW or np.allclose(self.ratings_.values, self.base_, rtol=1e-14, atol=0.0):
            return SHARE * self._problem(self._training()).strongest(), self.implicit_, None
        problem = self._problem(self.ratings_.part(self._split[0]))
        judges = (self._judged, self._clearly_better)
        given = (self.weights, self.rank, self._seed, *judges, [self._tally, *given_callbacks(self.callbacks)])
        announce(given_callbacks(self.callbacks), "path", most_sweeps(self.weights, len(self._split[0])))
        with deadline(None if self.time_limit is None else CHOOSING * self.time_limit):
            found = choose(problem, *given)
        # A penalty on fewer ratings is weaker, as the root of their number.
        grown = math.sqrt(len(self._training()) / len(self._split[0]))
        return found.strength * grown, found.implicit, found.state

    def _written(self) -> SavedRun | None:
        """The checkpoint to go on from, where there is one."""
        found = self._checkpoint({})
        return None if found is None or not persist.exists(found.path) else SavedRun.load(found.path)

    def _checkpoint(self, note: dict[str, Any]) -> Checkpoint | None:
        """The callback that writes the sweeps to disk with a note, None where no checkpoint was asked for."""
        given = self.checkpoint
        if given is None:
            return None
        if not isinstance(given, str | os.PathLike | Checkpoint):
            raise TypeError(
                f"`MatrixCompletion(checkpoint=...)` must be a folder or a `Checkpoint`, got {shown(given)}."
            )
        return replace(given if isinstance(given, Checkpoint) else Checkpoint(given, every=1), note=note)

    def _warn_if_wide(self, norm: float, fallen: bool, least: float) -> None:
        if self.radius is not None and fallen and self.radius > least and norm < 0.9 * self.radius:
            warnings.warn(
                f"`radius={self.radius:g}` is larger than these ratings need: the norm of the answer is {norm:.4g}, so "
                "the ball does not hold it back; choose a smaller radius, or leave it out.",
                stacklevel=stacklevel(),
            )

    def _finish(self, problem: ConvexProblem, swept: Swept, stopping: BestSweep | None) -> None:
        state: Any = swept.state if stopping is None or stopping.state is None else stopping.state
        self.strength_, self.n_iter_, self.n_sweeps_ = float(state.strength), swept.state.t, self._tally.every
        model = Factors.of(problem.f, state).double(problem.unit)
        self._keep(problem, model if swept.state.t else settled(problem, model))
        if swept.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(f"interrupted after {self.n_iter_} sweeps")
        # A ball that does not hold the answer back lets the penalty fall without end.
        fallen = self.strength_ <= max(WIDE * state.first, weakest(problem.f, state.first))
        self._warn_if_wide(self.norm_, fallen, problem.least_radius)
        if self.certify:
            announce(given_callbacks(self.callbacks), "certificate")
            most = self._affordable(problem)
            with ignore_deadline():  # it takes so many products, and the best offsets less than a sweep does
                self._prove(problem, certified(problem, self.factors_, self.radius_, most))
        early = stopping is not None and stopping.stopped
        if (
            self.tol is not None
            and not self.relative_gap_ <= self.tol
            and (early or swept.status is not Status.CALLBACK)
        ):
            self._go_on_to(problem, self.tol)

    def _affordable(self, problem: ConvexProblem) -> float:
        """The products that the bound may take: those of the fit, and what a time limit leaves at the pace of these."""
        rank, left = len(self.factors_.sigma), remaining()
        most = math.inf if self.certify == "sharp" else products(self._tally.every, problem, rank)
        if self.time_limit is None or left == math.inf:
            return most
        return min(most, products(self._tally.sweeps, problem, rank) * left / max(self.time_limit - left, 1e-9))

    def _keep(self, problem: ConvexProblem, model: Factors) -> None:
        """The attributes of a model that no certificate stands for yet."""
        norm = model.norm(problem.p)
        # The answer of a penalty minimises over the ball of its own norm.
        own = max(norm * (1.0 + 1e-12), problem.least_radius)
        self.radius_ = own if self.radius is None else float(self.radius)
        inside = model.inside(problem.p, self.radius_)
        nan = float("nan")
        self._prove(problem, CertifiedModel(inside, nan, nan, nan, False), result_=None)
