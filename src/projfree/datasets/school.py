"""School: exam scores of pupils in 139 schools of Inner London, one task a school."""

from __future__ import annotations

import numpy as np

from projfree.datasets.base import Dataset
from projfree.datasets.sources import SOURCES, check_content, find_file

SHAPE, N_TASKS = (15_362, 28), 139


def load_school() -> Dataset:
    """Load the School data, 15,362 x 28 with 139 tasks, from ``school/school.npz`` in PROJFREE_DATA.

    ``task`` holds the school of each row, from 0 to 138. The file is not packaged because of its licence.

    Examples
    --------
    >>> try:
    ...     tasks = load_school().task.max() + 1
    ... except FileNotFoundError:  # not below PROJFREE_DATA
    ...     tasks = 139
    >>> int(tasks)
    139
    """
    path, source = find_file("load_school()", SOURCES["school"]), SOURCES["school"]
    what = f"X of shape {SHAPE}, y, and task with {N_TASKS} tasks"
    with check_content("load_school", what, path, source), np.load(path, allow_pickle=False) as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64)
        schools, task = np.unique(arrays["task"], return_inverse=True)
        if X.shape != SHAPE or len(schools) != N_TASKS or not len(X) == len(y) == len(task):
            raise ValueError(f"{X.shape} with {len(schools)} tasks")
    return Dataset(
        X=X,
        y=y,
        feature_names=tuple(f"x{j}" for j in range(SHAPE[1])),
        name="School",
        description="Exam scores of 15,362 pupils in 139 schools of Inner London, 28 features, one task a school.",
        licence="from a GPL repository: not to be packaged",
        task=task,
    )
