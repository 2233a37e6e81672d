"""Loaders of real data for tests, benchmarks and examples. They need NumPy, and pooch for downloads.

Adult and a sample of YearPredictionMSD are part of the package. The licences or sizes of the others do not allow this:
they are read from the folder in the environment variable ``PROJFREE_DATA`` or from the cache, or else downloaded. This
package is independent of losses, sets and solvers.
"""

from projfree.datasets.adult import load_adult
from projfree.datasets.base import Dataset, Ratings
from projfree.datasets.movielens import load_movielens
from projfree.datasets.school import load_school
from projfree.datasets.stand_in import movielens_stand_in, year_stand_in
from projfree.datasets.year import load_year, load_year_sample

__all__ = [
    "Dataset",
    "Ratings",
    "load_adult",
    "load_movielens",
    "load_school",
    "load_year",
    "load_year_sample",
    "movielens_stand_in",
    "year_stand_in",
]
