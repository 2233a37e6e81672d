"""Small tables for a regression or a classification, and the norms that tests go through."""

import numpy as np
import sklearn
from sklearn.utils.fixes import parse_version

from projfree import ConstrainedRegressor

NORMS = [{"p": 1.0}, {"p": 1.5}, {"p": 2.0}]
#: How `LogisticRegression` is asked for an l_1 penalty.
L1_PENALTY = {"l1_ratio": 1.0} if parse_version(sklearn.__version__) >= parse_version("1.8") else {"penalty": "l1"}


def problem(seed, kind, n=30, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 2.0, d)
    u = X @ rng.standard_normal(d) + rng.standard_normal(n)
    return X, u if kind is ConstrainedRegressor else np.where(u + rng.standard_normal(n) > 0, "b", "a")
