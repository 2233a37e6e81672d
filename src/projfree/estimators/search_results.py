"""What a search over radii and exponents has found: its choice, and the table that scikit-learn's searches have."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np

from projfree.checks import Array, all_finite, count, real_array, shown, stacklevel

log = logging.getLogger(__name__)

RULES = ("best", "one_standard_error")
#: A grid is extended at most so often, each time by this factor.
MOST_EXTENSIONS, FACTOR = 3, 30.0
#: Scores that differ by less than this part count as equal: runs are no more precise.
EVEN = 1e-6


def checked_radii(radii: Any) -> Any:
    """The radii of a search: how many, or which ones, in increasing order."""
    if isinstance(radii, bool):
        raise TypeError(f"`radii` must be a number of radii or a sequence of positive radii, got {shown(radii)}.")
    if isinstance(radii, int | np.integer):
        return count("radii", int(radii))
    wanted = np.unique(all_finite("radii", real_array("radii", radii)).astype(np.float64))
    if not wanted.size or wanted[0] <= 0.0:
        given = shown(float(wanted[0])) if wanted.size else "none"
        raise ValueError(
            f"`radii` must be positive numbers, or how many to try, got {given}; leave it out for an automatic grid."
        )
    return wanted


def choose(scores: Array, rule: str) -> tuple[int, int]:
    """The places of the chosen exponent and radius: ties go to the first exponent and the smallest radius."""
    mean, folds = scores.mean(axis=2), scores.shape[2]
    usable = np.where(np.isfinite(mean), mean, -np.inf)
    if not np.isfinite(usable).any():
        raise ValueError(
            f"`scoring` gave no finite score in {folds} folds, so that no radius is the best; use a score that is "
            "defined on the rows of each fold, e.g. `scoring='neg_mean_squared_error'` where a fold has one row."
        )
    best, at = (int(i) for i in np.unravel_index(int(usable.argmax()), mean.shape))
    if rule == "one_standard_error" and folds > 1:
        error = scores[best, at].std(ddof=1) / np.sqrt(folds)
        at = int(np.flatnonzero(usable[best] >= mean[best, at] - error)[0])
    return best, at


def end_of(scores: Array) -> int:
    """-1 or 1 where some exponent scores best at the smallest or the largest radius, 0 where none does.

    Radii so large that no ball holds anything back score alike, and then the smallest of them counts as the best: a
    smaller one may be better, a larger one is not.
    """
    mean = scores.mean(axis=2)
    if mean.shape[1] < 2:
        return 0
    usable = np.where(np.isfinite(mean), mean, -np.inf)
    top = usable.max(axis=1)
    if np.any(usable[:, 0] >= top - EVEN * np.abs(top)):
        return -1
    ahead = usable[:, -1] - usable[:, :-1].max(axis=1)
    return int(np.any(ahead > EVEN * np.abs(usable[:, -1])))


def more_radii(radii: Array, side: int) -> Array:
    """Radii beyond an end of each grid, at the ratio of the grid, so many as a factor of 30 takes."""
    ratios = (radii[:, -1] / radii[:, 0]) ** (1.0 / (radii.shape[1] - 1))
    steps = np.arange(1, max(1, round(np.log(FACTOR) / np.log(ratios.max()))) + 1)
    if side > 0:
        return np.asarray(radii[:, -1:] * ratios[:, None] ** steps)
    return np.asarray(radii[:, :1] / ratios[:, None] ** steps[::-1])


def say_extended(name: str, added: tuple[int, int]) -> None:
    """A log record of the radii that were added below and above."""
    if any(added):
        log.info("%s extended its grid by %d radii below and %d above, where the best one was at an end.", name, *added)


def warn_at_end(name: str, radius: float, side: int, other: str, given: bool) -> None:
    """Say that a better radius may lie beyond the grid.

    An automatic grid whose smallest radius is best has found that the features say nothing, which is an answer.
    """
    where, way = ("largest", "larger") if side > 0 else ("smallest", "smaller")
    if given or side > 0:
        warnings.warn(
            f"{name}: the best radius, {radius:.4g}, is the {where} that was tried, and {way} ones may score better; "
            f"give {way} `radii`, or {other}.",
            UserWarning,
            stacklevel=stacklevel(),
        )


def results_table(exponents: list[float], radii: Array, scores: Array, seconds: Array) -> dict[str, Any]:
    """``cv_results_`` as in scikit-learn's searches, one entry for each exponent and radius.

    ``mean_fit_time`` is the time of a path divided by its radii.
    """
    m, flat = radii.shape[1], scores.reshape(-1, scores.shape[2])
    p, r = np.repeat(exponents, m), radii.ravel()
    mean = flat.mean(axis=1)
    usable = np.where(np.isfinite(mean), mean, -np.inf)
    rank = 1 + (usable[None, :] > usable[:, None]).sum(axis=1)
    times = np.repeat(seconds / m, m, axis=0)
    return {
        "mean_fit_time": times.mean(axis=1),
        "std_fit_time": times.std(axis=1),
        "param_p": p,
        "param_radius": r,
        "params": [{"p": float(a), "radius": float(b)} for a, b in zip(p, r, strict=True)],
        **{f"split{k}_test_score": column for k, column in enumerate(flat.T)},
        "mean_test_score": mean,
        "std_test_score": flat.std(axis=1),
        "rank_test_score": rank.astype(np.int32),
    }
