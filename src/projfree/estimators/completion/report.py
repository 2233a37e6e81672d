"""`Report`: how well ratings that were held out are predicted and recommended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array


@dataclass(frozen=True)
class Report:
    """Errors of predicted ratings, and what the lists of recommendations are worth.

    Attributes
    ----------
    rmse, mae : float
        The root mean squared and the mean absolute error of all ratings.
    precision, recall : float
        Of the ``k`` items recommended to a user, the part that the user likes; and of the items that the user likes,
        the part that is recommended. Both are means over ``n_users``; NaN where there is none.
    coverage : float
        The part of all items that is recommended to somebody.
    k : int
        The length of a list.
    threshold : float
        A rating of at least this says that the user likes the item.
    n_ratings, n_users : int
        Ratings, and users of the fit among them who like something.
    """

    rmse: float
    mae: float
    precision: float
    recall: float
    coverage: float
    k: int
    threshold: float
    n_ratings: int
    n_users: int


def judged(lists: Iterable[tuple[Array, Array]], liked: Array, width: int) -> tuple[float, float, float]:
    """Precision, recall and coverage of lists of recommendations, a list for each user.

    Parameters
    ----------
    lists : iterable of pairs of arrays
        Items by their places and their scores, NaN where there is no item; many users at a time.
    liked : ndarray of shape (2, n)
        Users by their lists and items by their places, -1 for one that no list can hold.
    width : int
        The number of items.
    """
    keys = np.where(liked[1] >= 0, liked[0] * width + liked[1], -1)
    shares, hits, start, somewhere = [], [], 0, np.zeros(width, dtype=bool)
    for top, scores in lists:
        there = ~np.isnan(scores)
        found = np.isin((start + np.arange(len(top)))[:, None] * width + top, keys) & there
        hits.append(found.sum(axis=1))
        shares.append(hits[-1] / np.maximum(there.sum(axis=1), 1))
        somewhere[top[there]] = True
        start += len(top)
    if not start:
        return float("nan"), float("nan"), 0.0
    recall = np.concatenate(hits) / np.bincount(liked[0], minlength=start)
    return float(np.concatenate(shares).mean()), float(recall.mean()), float(somewhere.mean())
