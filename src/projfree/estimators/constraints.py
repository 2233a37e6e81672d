"""Linear constraints on coefficients, from the parameters of an estimator to the coordinates of its problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from projfree.checks import Array, flag, instance, shown
from projfree.estimators.inputs import column_index, column_indices
from projfree.sets import Constrained, ConstraintSet, Rows
from projfree.sets.rows import bounds, order


def is_constrained(model: Any) -> bool:
    """Return whether an estimator has linear constraints."""
    if model.signs is None and model.order is None and model.bounds is None and model.constraints is None:
        return False
    return bool(constraint_rows(model))


def constrained_ball(model: Any, ball: ConstraintSet, shape: tuple[int, ...], problem: Any) -> ConstraintSet:
    """Return the intersection of a ball and the constraints, in the coordinates of the problem."""
    if shape[1:] not in ((), (1,)):
        raise ValueError(
            f"constraints need one output, got coefficients of shape {shape}; fit one model for each output or class."
        )
    rows = constraint_rows(model)
    if flag("positive", model.positive):
        rows.append(bounds([j for j in range(shape[0]) if j not in problem.free], 0.0))
    place = partial(column_index, "constraints", names=column_indices(model), d=shape[0])
    scale = np.ones(shape[0]) if problem.scaling is None else problem.scaling[1]
    placed = [each.at(place).scaled(1.0 / scale) for each in rows]
    return Constrained(ball, placed)


def constraint_rows(model: Any) -> list[Rows]:
    """Return the constraints of the parameters, with columns as the user named them."""
    rows: list[Rows] = []
    for column, sign in _mapping("signs", model.signs, '{"age": 1}').items():
        if isinstance(sign, bool | np.bool_) or np.ndim(sign) or sign not in (-1, 0, 1):
            raise ValueError(f"`signs` must be 1, -1 or 0 for each column, got {shown(sign)} for {shown(column)}.")
        if sign:
            rows.append(bounds([column], 0.0 if sign > 0 else None, None if sign > 0 else 0.0))
    chains = () if model.order is None else model.order
    if (
        isinstance(chains, str)
        or not isinstance(chains, Sequence)
        or not all(isinstance(each, Sequence | np.ndarray) and not isinstance(each, str) for each in chains)
    ):
        raise TypeError(f'`order` must be a list of lists of columns such as [["b1", "b2"]], got {shown(chains)}.')
    rows += [order(chain) for chain in chains]
    for column, limits in _mapping("bounds", model.bounds, '{"price": (None, 0)}').items():
        if isinstance(limits, str) or not isinstance(limits, Sequence | np.ndarray) or len(limits) != 2:
            raise ValueError(
                f"`bounds` must be a pair of numbers or None for each column, got {shown(limits)} for {shown(column)}."
            )
        rows.append(bounds([column], *limits))
    more = model.constraints
    more = () if more is None else tuple(more) if isinstance(more, Sequence) else (more,)
    for each in more:
        instance("constraints", each, Rows, "projfree.sets.sums_to(0, columns)")
    return [*rows, *more]


def active_constraints(ball: ConstraintSet, multipliers: Array | None) -> dict[str, float]:
    """Return the nonzero multipliers by the name of their constraint."""
    if not isinstance(ball, Constrained) or multipliers is None:
        return {}
    multipliers_by_name, times = {}, Counter[str]()
    for name, y in zip(ball.names, multipliers, strict=True):
        times[name] += 1  # several constraints may have the same name
        if y != 0.0:
            multipliers_by_name[name if times[name] == 1 else f"{name} ({times[name]})"] = float(y)
    return multipliers_by_name


def _mapping(name: str, given: Any, example: str) -> Mapping[Hashable, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"`{name}` must be a dictionary with columns as keys such as {example}, got {shown(given)}.")
    return {} if given is None else given
