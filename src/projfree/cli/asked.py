"""What the commands on a table and a model ask for alike, and the rows and settings that follow from it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_type_hints

from projfree.cli import options
from projfree.cli.file_rows import rows_of
from projfree.cli.models import AnyRows, Settings
from projfree.cli.streaming import streamed_rows, too_large
from projfree.cli.tables import Reading

#: As in scikit-learn.
FOLDS = 5


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of a table and of a model on it; each field is an option of the command line."""

    data: options.Data
    target: options.Target
    loss: options.LossName = options.LossChoice.auto
    quantile: options.Level = None
    norm: options.Norm = options.NormChoice.lp
    p: options.Exponent = "2"
    q: options.AcrossGroups = None
    feature_groups: options.FeatureGroups = None
    radius: options.Radius = None
    tol: options.Tol = 1e-6
    standardize: options.Standardize = None
    intercept: options.Intercept = True
    drop: options.Drop = None
    impute: options.Impute = None
    one_hot: options.OneHot = "auto"
    sep: options.Sep = None
    header: options.Header = None

    def settings(self, cv: int | None = None, **run: Any) -> Settings:
        """The checked options of the model, with those of its run; without folds and radius there are `FOLDS` folds."""
        options.refuse_below("--tol", self.tol, 0.0)
        options.refuse_below("--q", self.q, 1.0)
        cv = (FOLDS if self.radius is None else 0) if cv is None else cv
        level = options.level_of(self.quantile, self.loss.value)
        settings = Settings(
            norm=self.norm.value,
            p=options.exponents_of(self.p, cv),
            q=self.q,
            radius=options.radius_of(self.radius),
            tol=self.tol,
            standardize=self.standardize,
            intercept=self.intercept,
            feature_groups=self.feature_groups,
            cv=cv,
            more={**run, **level},
        )
        settings.check()
        return settings

    def rows(self) -> AnyRows:
        """The rows: in memory or, where they do not fit, where they are."""
        loss = self.loss.value
        if too_large(self.data):
            return streamed_rows(self.data, self.target, loss, self.drop)
        impute = None if self.impute is None else self.impute.value
        reading = Reading(self.sep, self.header)
        return rows_of(self.data, self.target, loss, self.drop, reading, impute, self.one_hot)


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first parameter is `Asked`, with an option for each of its fields in place of it."""
    hints = get_type_hints(Asked, include_extras=True)
    shared = [_parameter(f.name, hints[f.name], f.default) for f in fields(Asked)]
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    every = [*shared, *[_parameter(one.name, one.annotation, one.default) for one in own]]

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        asked = Asked(**{one.name: given.pop(one.name) for one in shared})
        command(asked, **given)

    # Typer makes the options of a function from these two.
    vars(wrapped)["__signature__"] = inspect.Signature(every)
    wrapped.__annotations__ = {one.name: one.annotation for one in every}
    return wrapped


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    none = inspect.Parameter.empty
    given = none if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=given, annotation=annotation)
