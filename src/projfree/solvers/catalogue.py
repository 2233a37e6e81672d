"""`SOLVERS`: all solvers of the package, for tables and tests."""

from projfree.lazy_import import exported_classes
from projfree.solvers.base import Solver

SOLVERS: tuple[type[Solver], ...] = exported_classes("projfree.solvers", Solver)
