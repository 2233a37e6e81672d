"""Optima of penalised problems to near machine precision: what radii and true errors of sparse problems come from.

A problem is given by its multiplier; its radius is then the norm of the penalised minimiser. That minimiser is found by
a peer at a tight tolerance and polished by Newton's method, on the support where the penalty is l_1. Nothing here needs
to be trusted: the Frank-Wolfe gap of every optimum over its ball bounds its error, and is written down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, logsumexp, softmax


def slopes(loss: str, u: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivatives of the loss at every prediction (softmax: the probabilities instead)."""
    if loss == "squared":
        return 2.0 * (u - y), np.full_like(u, 2.0)
    if loss == "logistic":
        s = expit(-y * u)
        return -y * s, s * (1.0 - s)
    P = softmax(u, axis=1)
    first = P.copy()
    first[np.arange(len(y)), y.astype(int)] -= 1.0
    return first, P


def polished(loss: str, X: Any, y: np.ndarray, w: np.ndarray, mu: float, intercept: bool) -> np.ndarray:
    """The minimiser of f + mu ||w||_1 by Newton's method on the support of w, or w where signs would change."""
    support = np.flatnonzero(w)
    XS, signs = X.tocsc()[:, support] if sparse.issparse(X) else X[:, support], np.sign(w[support])
    if intercept:  # of squares: centred columns and targets
        centre = np.asarray(XS.mean(axis=0)).ravel()
        y = y - y.mean()
    v, n = w[support].copy(), len(y)
    for _ in range(8 if loss != "squared" else 3):
        u = XS @ v - (centre @ v if intercept else 0.0)
        first, second = slopes(loss, u, y)
        g = XS.T @ first / n + mu * signs
        H = XS.T @ (sparse.diags(second / n) @ XS if sparse.issparse(XS) else XS * (second / n)[:, None])
        H = H.toarray() if sparse.issparse(H) else H
        if intercept:
            g, H = g - centre * first.mean(), H - 2.0 * np.outer(centre, centre)
        v = v - np.linalg.lstsq(H, g, rcond=1e-13)[0] if len(v) < 1_000 else v - np.linalg.solve(H, g)
    if not np.all(np.sign(v) == signs):
        return w
    out = np.zeros_like(w)
    out[support] = v
    return out


def smooth(loss: str, X: Any, y: np.ndarray, strength: float, W: np.ndarray, steps: int = 40) -> np.ndarray:
    """The minimiser of f + strength ||W||^2 / 2 by Newton's method with conjugate gradients, from a good start."""
    n, shape = len(y), W.shape

    def product(second: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        def hessian(flat: np.ndarray) -> np.ndarray:
            V = flat.reshape(shape)
            U = X @ V
            U = second * U if loss != "softmax" else second * (U - (second * U).sum(axis=1, keepdims=True))
            return (X.T @ U / n + strength * V).ravel()

        return hessian

    first, _ = slopes(loss, X @ np.zeros(shape), y)
    scale = np.linalg.norm(X.T @ first / n)
    for _ in range(steps):
        first, second = slopes(loss, X @ W, y)
        g = X.T @ first / n + strength * W
        size = np.linalg.norm(g) / scale
        if size <= 1e-11:
            break
        H = LinearOperator((W.size, W.size), matvec=product(second), dtype=float)
        step, _ = cg(H, -g.ravel(), rtol=min(1e-2, max(1e-4, size)), maxiter=500)
        step, value = step.reshape(shape), mean_loss(loss, X @ W, y) + 0.5 * strength * np.sum(W**2)
        for power in range(20):  # near the minimum rounding decides, so that a full step is taken there
            moved = W + 0.5**power * step
            if size <= 1e-4 or mean_loss(loss, X @ moved, y) + 0.5 * strength * np.sum(moved**2) < value:
                break
        W = moved
    return W


def mean_loss(loss: str, u: np.ndarray, y: np.ndarray) -> float:
    """The mean loss of predictions."""
    if loss == "squared":
        return float(np.mean((u - y) ** 2))
    if loss == "logistic":
        return float(np.mean(np.logaddexp(0.0, -y * u)))
    return float(np.mean(logsumexp(u, axis=1) - u[np.arange(len(y)), y.astype(int)]))


def with_nonzeros(solve: Callable[[float], np.ndarray], largest: float, wanted: int) -> float:
    """The multiplier at which about so many groups or coefficients are not zero, by bisection of its logarithm.

    Parameters
    ----------
    solve : callable
        The penalised minimiser at a multiplier, roughly.
    largest : float
        The multiplier from which on all are zero.
    wanted : int
        How many.
    """
    high, low = largest, 0.5 * largest
    while np.count_nonzero(solve(low)) < wanted and low > 1e-6 * largest:
        high, low = low, 0.5 * low
    for _ in range(12):
        middle = np.sqrt(low * high)
        found = np.count_nonzero(solve(middle))
        if abs(found - wanted) <= 0.02 * wanted:
            return float(middle)
        low, high = (low, middle) if found < wanted else (middle, high)
    return float(np.sqrt(low * high))
