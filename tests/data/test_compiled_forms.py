"""Which losses and steps have a compiled form: those that brought one, and no subclass of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from data.passes import (
    Case,
    X,
    agrees,
    prepare,
)

from projfree.data.rows import Pass
from projfree.losses import (
    LOSSES,
    Loss,
    Squared,
)
from projfree.objectives.row_steps import TangentSums


class Triple(Squared):
    """Three times the square: what is compiled for `Squared` is wrong for it."""

    def value(self, u, y):
        return 3.0 * super().value(u, y)

    def derivative(self, u, y):
        return 3.0 * super().derivative(u, y)

    def second(self, u, y):
        return 3.0 * super().second(u, y)


class Twofold(TangentSums):
    """A step of its own."""


def test_subclasses_inherit_nothing():
    assert Triple.kernel is None
    assert prepare(Case(Triple()).build()) is None
    own = Case(Squared(), points=1).build()
    step = Twofold(Squared(), own.step.b)
    assert prepare(Pass(**{**vars(own), "step": step})) is None


def test_every_loss_of_the_package_is_compiled():
    assert all(loss.kernel is not None for loss in LOSSES)


@dataclass(frozen=True)
class Pinball(Loss):
    """A smooth loss with three parameters, which the package does not know."""

    left: float = 0.5
    right: float = 2.0
    centre: float = 0.1

    smoothness = 4.0

    def _side(self, u, y):
        r = u - y - self.centre
        return r, np.where(r > 0, self.right, self.left)

    def value(self, u, y):
        r, side = self._side(u, y)
        return side * r * r - 0.3

    def derivative(self, u, y):
        r, side = self._side(u, y)
        return 2.0 * side * r

    def second(self, u, y):
        return 2.0 * self._side(u, y)[1]

    def targets(self, y):
        return y

    @staticmethod
    def kernel(parameters, u, y, value, slope):
        for i in range(len(u)):
            r = u[i] - y[i] - parameters[2]
            side = parameters[1] if r > 0.0 else parameters[0]
            value[i] = side * r * r - 0.3
            slope[i] = 2.0 * side * r


@dataclass(frozen=True)
class Norm(Loss):
    """The smoothed Euclidean norm of a row of residuals: coupled, with numbers as targets."""

    coupled = True
    smoothness = 1.0

    def value(self, u, y):
        return np.sqrt(1.0 + np.sum((u - y) ** 2, axis=1))

    def derivative(self, u, y):
        return (u - y) / self.value(u, y)[:, None]

    def second(self, u, y):
        raise NotImplementedError

    def targets(self, y):
        return y

    @staticmethod
    def kernel(parameters, u, y, value, slope):
        k = len(u) // len(value)
        for i in range(len(value)):
            total = 1.0
            for c in range(i * k, i * k + k):
                slope[c] = u[c] - y[c]
                total += slope[c] ** 2
            value[i] = np.sqrt(total)
            for c in range(i * k, i * k + k):
                slope[c] /= value[i]


@pytest.mark.parametrize("k", [0, 3])
def test_a_loss_from_outside_brings_its_form(k):
    """Its values may be negative, so the sum of their sizes is not their sum."""
    agrees(Case(Pinball(left=0.25), k).build(), X)


def test_a_coupled_loss_from_outside():
    pass_ = Case(Squared(), 5).build()
    agrees(Pass(**{**vars(pass_), "step": TangentSums(Norm(), pass_.step.b)}), X)
