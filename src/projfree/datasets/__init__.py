"""Real data for tests, benchmarks and examples; the loaders need NumPy alone (and pooch for downloads).

Adult and a sample of YearPredictionMSD travel with the package. The others are looked for in the folder that the
environment variable ``PROJFREE_DATA`` names, then in the cache, and are else downloaded from their homes, because
their licences or their sizes do not allow packaging.
This package knows nothing of losses, sets or solvers.
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
