"""School: exam scores of pupils in 139 schools of Inner London, one task a school."""

from __future__ import annotations

import numpy as np

from projfree.datasets.base import Dataset
from projfree.datasets.sources import SOURCES, find

SHAPE, N_TASKS = (15_362, 28), 139


def load_school() -> Dataset:
    """Load the School data, 15,362 x 28 with 139 tasks, from ``school/school.npz`` in PROJFREE_DATA.

    ``task`` holds the school of each row, from 0 to 138. The file is not packaged because of its licence.

    Examples
    --------
    >>> try:
    ...     school = load_school()
    ...     print(school.X.shape, school.task.max() + 1)
    ... except FileNotFoundError:  # not below PROJFREE_DATA
    ...     print("(15362, 28) 139 once the file is there")
    (15362, 28) 139...
    """
    path = find("load_school()", SOURCES["school"])
    with np.load(path, allow_pickle=False) as arrays:
        missing = sorted({"X", "y", "task"} - set(arrays.files))
        if missing:
            raise ValueError(f"`load_school` expects X, y and task in {str(path)!r}, but it has no {missing[0]}.")
        X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64)
        schools, task = np.unique(arrays["task"], return_inverse=True)
    if X.shape != SHAPE or len(schools) != N_TASKS or not len(X) == len(y) == len(task):
        raise ValueError(
            f"`load_school` expects X of shape {SHAPE} with {N_TASKS} tasks in {str(path)!r}, but it holds {X.shape} "
            f"with {len(schools)}; get it again."
        )
    return Dataset(
        X=X,
        y=y,
        feature_names=tuple(f"x{j}" for j in range(SHAPE[1])),
        name="School",
        description="Exam scores of 15,362 pupils in 139 schools of Inner London, 28 features, one task a school.",
        licence="from a GPL repository: not to be packaged",
        task=task,
    )
