"""`SOLVERS`: every solver of the package, for tables and tests, which follow when one is added."""

from projfree.lazy_import import classes
from projfree.solvers.base import Solver

SOLVERS: tuple[type[Solver], ...] = classes("projfree.solvers", Solver)
