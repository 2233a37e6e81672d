"""`Costs`: a problem in the numbers that the rules of the plan look at."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

from projfree.algebra import FactoredShape
from projfree.objectives.base import SmoothFunction
from projfree.objectives.workload import Workload
from projfree.sets.base import ConstraintSet
from projfree.solvers.correction import has_products
from projfree.solvers.model import MOST_PARAMETERS

# Fitted by `python benchmarks/plan_fit.py`; all costs are in reads of X.
#: A Hessian or Gram matrix of D parameters costs D times this.
HESSIAN = 0.154
#: Flops of one model solve, over D^3, and flops in the time in which memory gives one number.
MODEL_FLOPS, FLOPS_A_READ = 5.0, 8.0
#: A tangent costs a read and a half for one output, and this part of a read for each of several.
TANGENT, OUTPUT = 1.5, 0.4
#: A search along images, for an intercept or a step, costs a row so many numbers' time for each output (3.4 ms for
#: 48,842 rows); a coupled loss costs more.
SEARCH, COUPLED_SEARCH = 250.0, 400.0
#: Rounds that such a search takes where rows are elsewhere: each asks for several places at once.
FOLDS = 6.0
#: A read takes at least the time in which memory gives so many numbers, however small the table (0.1 ms).
LEAST_READ = 100_000.0
# Measured by `python benchmarks/projections.py` and rounded: numbers that memory gives in the time of one entry.
#: Of a projection with a formula or by thresholds, of one that solves an equation for each entry, and of the oracle.
PROJECTION, POWER_PROJECTION, ORACLE = 10.0, 200.0, 5.0
#: Of a decomposition into singular values, for each of the shorter side (1.4 to 2.5, more where entries are few).
SPECTRUM = 2.0


class Traits(NamedTuple):
    """What the rules of the plan ask a function, as values: a result keeps its plan, which must not keep the rows."""

    shape: tuple[int, ...]
    rows: int | None
    convex: bool
    quadratic: bool
    has_images: bool
    has_hessian: bool
    has_curvature: bool
    has_quadratic_form: bool

    @classmethod
    def of(cls, f: SmoothFunction) -> Traits:
        """The traits of a function."""
        able = (f.has_images, f.has_hessian, has_products(f), f.has_quadratic_form)
        return cls(f.shape, f.rows, f.convex, f.quadratic, *able)


class Costs:
    """A function and a set, with what work on them costs in reads of the data and in bytes.

    ``radii`` is the number of balls that a path of solutions has: what belongs to the function alone serves them all.

    Attributes
    ----------
    f : Traits
        What the function can do.
    load : Workload
        What it says about itself.
    parameters : int
        Entries of a parameter.
    size, span : float
        Numbers that a read of the data meets, and those that memory gives in the time of a read: more where the table
        is small, or its rows are elsewhere.
    product, search, tangent : float
        Reads in the time of a product with a Hessian, or a tangent at a given intercept; of a search along images; and
        of a tangent, its intercept included.
    """

    def __init__(self, f: SmoothFunction, ball: ConstraintSet, radii: int = 1) -> None:
        self._count(Traits.of(f), f.workload(), ball, radii)

    def repriced(self) -> Costs:
        """The same problem with all numbers computed anew, for those who change the prices above."""
        new = object.__new__(Costs)
        new._count(self.f, self.load, self.ball, self.radii)
        return new

    def _count(self, f: Traits, load: Workload, ball: ConstraintSet, radii: int) -> None:
        self.f, self.load, self.ball, self.radii = f, load, ball, radii
        self.parameters, self.size = math.prod(f.shape), self.load.stored
        self.span, self.product, self.search = self.size, 1.0, 0.0
        if self.load.measured:
            k, each = self.load.outputs, COUPLED_SEARCH if self.load.coupled else SEARCH
            self.span = max(self.size, LEAST_READ) + self.load.round_numbers
            self.product = TANGENT if k == 1 else 1.0 + OUTPUT * k
            self.search = (each * k * (f.rows or 1) + FOLDS * self.load.round_numbers) / self.span
        searches = self.load.measured and self.load.searches
        self.tangent = self.product + 1.0 + self.search if searches else self.product

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Costs) and self._given() == other._given()

    def __hash__(self) -> int:
        return hash(self._given())

    def _given(self) -> tuple[object, ...]:
        return self.f, self.load, self.ball, self.radii

    def describe(self, tol: float) -> str:
        """The problem in one line."""
        rows = "" if self.f.rows is None else f"{self.f.rows:,} rows, "
        return f"{self.load.name} {rows}{self.f.shape} over {self.ball!r}, tolerance {tol:g}"

    @cached_property
    def has_model(self) -> bool:
        """Whether a quadratic model over the set can be formed and solved."""
        if self.ball.has_free and self.f.convex:
            return False
        return self.f.has_hessian and self.ball.projects_quickly and self.parameters <= MOST_PARAMETERS

    @cached_property
    def model_work(self) -> float:
        """Reads that one solve of a model takes the time of."""
        return MODEL_FLOPS * float(self.parameters) ** 3 / (FLOPS_A_READ * self.span)

    @cached_property
    def projection(self) -> float:
        """Reads that a projection takes the time of."""
        return self._entries(POWER_PROJECTION if self.powers else PROJECTION)

    @cached_property
    def powers(self) -> bool:
        """Whether the set is an l_p ball whose geometry takes powers of entries."""
        lp = self.ball.as_lp(self.f.shape)
        return lp is not None and lp.p not in (1.0, 2.0, math.inf)

    @cached_property
    def oracle(self) -> float:
        """Reads that a call of the oracle takes the time of."""
        return self._entries(ORACLE)

    def _entries(self, numbers: float) -> float:
        """Reads in the time of so many numbers an entry, and of a spectrum where the set asks for one."""
        if not self.load.measured or isinstance(self.f.shape, FactoredShape):
            return 0.0
        spectrum = SPECTRUM * min(self.f.shape) if self.ball.spectral and len(self.f.shape) > 1 else 0.0
        return (numbers + spectrum) * self.parameters / self.span

    @property
    def image_bytes(self) -> int:
        """Bytes of one image."""
        return 8 * (self.f.rows or 0) * self.load.outputs

    @property
    def vector_bytes(self) -> int:
        """Bytes of one parameter; those in factors and on patterns take about as much as an image."""
        return self.image_bytes if isinstance(self.f.shape, FactoredShape) else 8 * self.parameters
