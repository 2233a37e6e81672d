"""`SETS`: all sets of the package, for tables and tests.

`Constrained` is excluded: its oracle solves a linear program, which is less accurate than the common tests require.
"""

from projfree.lazy_import import exported_classes
from projfree.sets.base import ConstraintSet
from projfree.sets.constrained import Constrained

SETS: tuple[type[ConstraintSet], ...] = tuple(
    kind for kind in exported_classes("projfree.sets", ConstraintSet) if kind is not Constrained
)
