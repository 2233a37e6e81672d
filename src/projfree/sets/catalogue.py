"""`SETS`: every set of the package that has an oracle of its own, for tables and tests, which follow when one is added.

A `Constrained` set has not: its oracle is a linear program, which is less exact than the laws ask for.
"""

from projfree.lazy_import import exported_classes
from projfree.sets.base import ConstraintSet
from projfree.sets.constrained import Constrained

SETS: tuple[type[ConstraintSet], ...] = tuple(
    kind for kind in exported_classes("projfree.sets", ConstraintSet) if kind is not Constrained
)
