"""`SOLVERS`: every solver of the package, for tables and tests, which follow when one is added."""

from projfree.first_use import classes
from projfree.solvers.base import Solver

SOLVERS: tuple[type[Solver], ...] = classes("projfree.solvers", Solver)
