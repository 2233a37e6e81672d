"""Small tables for a regression or a classification, and the norms that tests go through."""

from fractions import Fraction

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


def exact_least_squares(X, y):
    """The smallest mean square of residuals on exactly these columns and a constant, in fractions."""
    A = [[Fraction(float(v)) for v in row] + [Fraction(1)] for row in X]
    b = [Fraction(float(v)) for v in y]
    k = len(A[0])
    M = [
        [sum(r[i] * r[j] for r in A) for j in range(k)] + [sum(r[i] * v for r, v in zip(A, b, strict=True))]
        for i in range(k)
    ]
    for i in range(k):
        for j in range(i + 1, k):
            ratio = M[j][i] / M[i][i]
            M[j] = [a - ratio * c for a, c in zip(M[j], M[i], strict=True)]
    w = [Fraction(0)] * k
    for i in reversed(range(k)):
        w[i] = (M[i][-1] - sum(M[i][j] * w[j] for j in range(i + 1, k))) / M[i][i]
    return sum((v - sum(a * c for a, c in zip(r, w, strict=True))) ** 2 for r, v in zip(A, b, strict=True)) / len(b)
