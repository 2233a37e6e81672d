"""`SETS`: every set of the package, for tables and tests, which follow when one is added."""

from projfree.lazy_import import classes
from projfree.sets.base import ConstraintSet

SETS: tuple[type[ConstraintSet], ...] = classes("projfree.sets", ConstraintSet)
