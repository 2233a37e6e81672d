"""A model of the time of a round on many workers, and a small simulation to compare it with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from projfree.checks import Array


@dataclass(frozen=True)
class RoundModel:
    r"""The time of a round, :math:`T(W) = o + c W + S / (W B) + 8 r d / N`.

    Attributes
    ----------
    latency : float
        o, the seconds of a round that does nothing.
    per_worker : float
        c, the seconds that each worker costs the scheduler and the client.
    read : float
        B, bytes that a worker reads in a second.
    network : float
        N, bytes that the client receives in a second.

    Examples
    --------
    >>> from projfree.data.dask.round_model import RoundModel
    >>> model = RoundModel()
    >>> [round(model.seconds(1e12, 90, workers), 1) for workers in (10, 100, 1000)]
    [10.0, 1.1, 1.1]
    >>> round(model.best_workers(1e12))
    316
    """

    latency: float = 0.01
    per_worker: float = 0.001
    read: float = 1e10
    network: float = 1.25e9

    def seconds(self, nbytes: float, features: int, workers: int, roots: int = 1) -> float:
        """The time of a round over so many bytes, with ``roots`` sums coming back from each worker."""
        back = 8.0 * features * roots * workers / self.network
        return self.latency + self.per_worker * workers + nbytes / (workers * self.read) + back

    def best_workers(self, nbytes: float) -> float:
        """The number of workers beyond which a round takes longer with more of them."""
        return math.sqrt(nbytes / (self.read * self.per_worker))

    def simulated(
        self, nbytes: float, features: int, workers: int, *, spread: float = 0.0, rounds: int = 20, seed: int = 0
    ) -> float:
        """The mean time of rounds in which tasks leave one after the other, and answers queue until all have left.

        Workers have speeds that differ from round to round by the relative standard deviation ``spread``, never below a
        fifth of the mean.
        """
        rng = np.random.default_rng(seed)
        times = [self._round(nbytes, features, _speeds(rng, workers, spread)) for _ in range(rounds)]
        return float(np.mean(times))

    def _round(self, nbytes: float, features: int, speeds: Array) -> float:
        workers = len(speeds)
        half = 0.5 * self.per_worker  # a task costs as much to send as to take in
        sent = 0.5 * self.latency + half * np.arange(1, workers + 1)
        done = np.sort(sent + nbytes / (workers * self.read * speeds))
        clock, receive = float(sent[-1]), half + 8.0 * features / self.network
        for arrival in done:  # what sends tasks also takes in answers, and does one thing at a time
            clock = max(clock, float(arrival)) + receive
        return clock + 0.5 * self.latency


def _speeds(rng: np.random.Generator, workers: int, spread: float) -> Array:
    return np.maximum(1.0 + spread * rng.standard_normal(workers), 0.2)
