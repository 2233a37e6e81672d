"""Random quadratics over l_p balls that are hard in known ways."""

from __future__ import annotations

import numpy as np

from projfree.numerics.lp_norm import conjugate, lp_norm


def with_condition(rng, d, condition):
    """A matrix with eigenvalues from 1 down to 1 over ``condition``, its features badly scaled half the time."""
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    H = (Q * np.logspace(0.0, -np.log10(condition), d)) @ Q.T
    if rng.random() < 0.5:
        scale = np.exp(rng.standard_normal(d))
        H = H * scale * scale[:, None]
    return (H + H.T) / 2.0


def deficient(rng, d, rank):
    """A matrix of this rank, as n < d rows give it."""
    X = rng.standard_normal((rank, d))
    return X.T @ X / rank


def draw(rng, d, condition, p, rho, outputs=()):
    """``H, b, radius`` with the radius ``rho`` times the norm of the minimiser without the ball."""
    H = with_condition(rng, d, condition)
    w = rng.standard_normal((d, *outputs))
    if rng.random() < 0.3:
        w *= rng.random(w.shape) < 0.3
        w[0] = 1.0
    return H, H @ w, rho * lp_norm(w, p)


def gap(H, b, p, radius, w):
    """The Frank-Wolfe gap, computed here."""
    g = H @ w - b
    return float(np.vdot(g, w)) + radius * lp_norm(g, conjugate(p))


def value(H, b, w):
    """The quadratic."""
    return 0.5 * float(np.vdot(w, H @ w)) - float(np.vdot(b, w))


def rounding(H, b, p, radius, w):
    """What a gap may be off by: the rounding of the gradient, entry by entry."""
    eps = float(np.finfo(float).eps)
    return eps * radius * lp_norm(np.abs(H) @ np.abs(w) + np.abs(b), conjugate(p))


def is_exact(H, b, p, radius, w):
    """Whether w lies in the ball, with a gap of at most a few roundings of its terms."""
    floor = rounding(H, b, p, radius, w)
    few = 32.0 * (floor + 4.0 * float(np.finfo(float).eps) * radius * lp_norm(H @ w - b, conjugate(p))) + 20.0 * floor
    return lp_norm(w, p) <= radius * (1.0 + 1e-13) and gap(H, b, p, radius, w) <= few
