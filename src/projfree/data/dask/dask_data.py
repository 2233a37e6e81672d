"""`DaskData`: a table whose rows are partitions of a Dask collection, and `from_dask`, which creates it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from projfree.algebra import Point, frozen
from projfree.algebra.hashing import short_hash
from projfree.checks import Array, positive
from projfree.data.base import Data, Fold
from projfree.data.column_stats import ColumnStats
from projfree.data.convert import is_dask, is_dask_block
from projfree.data.dask.partition import (
    FoldFactor,
    TargetFactor,
    View,
    build_partition,
    on_view,
    weight_sum,
)
from projfree.data.dask.rounds import ClusterRounds, Combine, LocalRounds
from projfree.data.gram import MIN_WEIGHT, Gram, Moments
from projfree.data.local import LocalData, checked_scaling
from projfree.data.rows import FormPredictions, Step
from projfree.data.workspace import LocalWorkspace, Workspace


def add_results(a: Any, b: Any) -> Any:
    """Add two arrays, or two tuples of arrays element by element; None counts as zero."""
    if a is None or b is None:
        return b if a is None else a
    return tuple(map(add_results, a, b)) if isinstance(a, tuple) else a + b


class DaskData(Data):
    """A table whose partitions are stored on the workers of a Dask cluster; created by `as_data`.

    Each operation on the rows is one round: a task on each worker evaluates a function of the parameters on its
    partitions and returns sums, which are added in a fixed binary tree over the partition numbers. Results therefore
    depend neither on the number of workers nor on partitions that were lost and recomputed.

    Parameters
    ----------
    rounds : LocalRounds or ClusterRounds
        The partitions.
    """

    def __init__(self, rounds: LocalRounds | ClusterRounds) -> None:
        self.rounds, self.facts = rounds, rounds.facts
        if not self.facts:
            raise ValueError("`X` must be a table with at least one row, got partitions without any.")
        first = self.facts[0]
        for one, what in product(self.facts, first.form):
            if one.form[what] != first.form[what]:
                raise ValueError(
                    f"partition {one.number} of the data (rows 0 to {one.n - 1} of it) must have the same {what} as "
                    f"partition {first.number}, {first.form[what]}, got {one.form[what]}; convert the partitions alike."
                )
        self.n, self.d = sum(one.n for one in self.facts), first.form["columns"]
        self.feature_names = first.form["names of columns"]
        self.view = View(total=float(self.n), nbytes=sum(one.nbytes for one in self.facts))
        if first.form["weights"] == "some":
            self._weigh()

    def _weigh(self) -> DaskData:
        """Compute the sum of the weights of the view, which normalises them, in one round."""
        total = self.rounds.run("weights", partial(weight_sum, self.view), add_results)
        if not MIN_WEIGHT < total < math.inf:
            raise ValueError(
                f"`sample_weight` must have a positive and finite sum, got {total:g}; rescale them, and drop rows that "
                "do not count."
            )
        self.view, self.total_weight = replace(self.view, total=total), total
        self.__dict__.pop("_stats", None)  # computed with other weights
        return self

    def _viewed(self, **changes: Any) -> DaskData:
        data = copy(self)
        data.view = replace(self.view, **changes)
        return data

    def _run(self, function: Callable[[Any], Any], combine: Combine = add_results) -> Any:
        return self.rounds.run("measure", partial(on_view, self.view, function), combine)

    @cached_property
    def _stats(self) -> ColumnStats:
        found: ColumnStats = self._viewed(scaling=None)._run(compute_stats, ColumnStats.merge)
        return found

    @property
    def column_stats(self) -> ColumnStats:  # type: ignore[override]  # read-only here
        return self._stats if self.view.scaling is None else self._stats.scaled(*self.view.scaling)

    def open(self) -> DaskWorkspace:
        return DaskWorkspace(self, self.view)

    def with_targets(
        self, convert: Callable[[Array], Array], reweight: Callable[[Array], Array] | None = None
    ) -> DaskData:
        data = self._viewed(targets=(*self.view.targets, convert))
        if reweight is None:
            return data
        data.view = replace(data.view, factors=(*self.view.factors, TargetFactor(self.view.targets, reweight)))
        return data._weigh()

    def subset(self, rows: Array | Fold) -> DaskData:
        if not isinstance(rows, Fold):
            raise TypeError("Dask data have no row numbers; take a `Fold`, or parts of the collection.")
        # Rows of other folds have weight zero: nothing is copied.
        return self._viewed(factors=(*self.view.factors, FoldFactor(rows)))._weigh()

    def labels(self) -> list[Array]:
        return list(self._run(LocalData.labels, _join_labels))

    def quantile(self, q: float) -> Array:
        """Return the quantile of the partition quantiles, weighted by the number of rows."""
        found = self._run(lambda data: data.quantile(q)[None], lambda a, b: np.concatenate([a, b]))
        order = np.argsort(found, axis=0, kind="stable")
        rows = np.array([one.n for one in self.facts])[order]
        place = (np.cumsum(rows, axis=0) >= q * self.n).argmax(axis=0)
        return np.asarray(np.take_along_axis(np.take_along_axis(found, order, 0), place[None], 0)[0])

    def shape(self, outputs: tuple[int, ...]) -> tuple[int, ...]:
        return (self.d, *outputs)

    @property
    def rounding_units(self) -> float:  # type: ignore[override]  # read-only here
        # The units of one partition, the tree over partitions, and the normalisation of the weights.
        tree = math.ceil(math.log2(self.facts[-1].number + 2))
        return max(one.rounding_units for one in self.facts) + tree + 2.0

    def gram(self) -> Gram:
        if self.view.scaling is not None:
            return self._viewed(scaling=None).gram().standardized(*self.view.scaling)
        total = min(max(float(self.total_weight or self.n), MIN_WEIGHT), 1.0 / MIN_WEIGHT)
        mean = self.mean_target()
        centre = np.concatenate([self._stats.centre, mean.ravel()])

        def moments(data: LocalData) -> Gram:
            data.total_weight = total
            return Gram.of(data, centre)

        gram: Gram = self._run(moments, Gram.merge)
        gram.n = self.n
        return gram

    def standardized(self, centre: Any, scale: Any) -> DaskData:
        return self._viewed(scaling=checked_scaling(self, centre, scale))

    def fingerprint(self) -> str:
        from dask.base import tokenize

        checksums = " ".join(one.checksum for one in self.facts)
        return short_hash(f"dask {self.n} {self.d} {checksums} {tokenize(self.view.factors, self.view.scaling)}")


def compute_stats(data: LocalData) -> ColumnStats:
    """Compute the statistics of the rows with their current weights."""
    data.measure()
    return data.table_stats


class DaskWorkspace(Workspace):
    """A workspace in which each sweep and each fold is one round.

    Predictions are not cached: a fold recomputes them, which is one pass.
    """

    def __init__(self, data: DaskData, view: View, parent: Workspace | None = None) -> None:
        self._data, self._view, self._parent = data, view, parent
        self._rows = data.n if view.sample is None else sum(view.sample[1].values())

    def __deepcopy__(self, memo: dict[int, Any]) -> DaskWorkspace:
        return DaskWorkspace(self._data, self._view)

    def sweep(self, step: Step, points: Sequence[Point], *, keep: bool = False) -> tuple[Array, Any]:
        found: tuple[Array, Any] = self._run("sweep", step, _plain(points))
        self._count(self._rows)
        return found

    def fold(self, step: Step, points: Sequence[Point]) -> Array:
        if isinstance(step, FormPredictions):
            return np.zeros(0)  # predictions are not cached
        sums = np.asarray(self._run("fold", step, _plain(points)))
        if not all(self.holds(x) for x in points):
            self._count(self._rows)
        return sums

    def holds(self, x: Point) -> bool:
        return not x.w.any()

    def sample(self, m: int, rng: np.random.Generator) -> DaskWorkspace:
        """Draw ``m`` rows without replacement, from each partition in proportion to its number of rows.

        The sizes are rounded systematically, so that every row has inclusion probability ``m / n``. The rows drawn
        depend on the generator and the number of the partition only.
        """
        facts, n = self._data.facts, self._data.n
        ends = np.cumsum([0, *(one.n for one in facts)]) * (m / n) + rng.uniform()
        drawn = np.diff(np.floor(ends)).astype(int).tolist()
        counts = {one.number: min(own, one.n) for one, own in zip(facts, drawn, strict=True) if own}
        sample = int(rng.integers(2**63)), counts, n / m
        return DaskWorkspace(self._data, replace(self._view, sample=sample), self)

    def moments(self, step: Step, x: Point, wanted: Moments) -> Any:
        if wanted.factors:
            return None
        if wanted.centred:
            wanted = replace(wanted, centre=self._data._stats.centre)
        moments: Array = self._run("moments", step, *_plain([x]), wanted)
        self._count(self._rows)
        return moments

    def _run(self, name: str, *arguments: Any) -> Any:
        """Call the workspace method ``name`` on every partition and return the sum of the results."""
        work = partial(on_view, self._view, lambda data: getattr(LocalWorkspace(data), name)(*arguments))
        return self._data.rounds.run(name, work, add_results)


def _plain(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return copies of the points with the parameters only, to be sent to workers."""
    return tuple(Point(frozen(np.asarray(x.w))) for x in points)


def _join_labels(a: list[Array], b: list[Array]) -> list[Array]:
    return [np.union1d(x, y) for x, y in zip(a, b, strict=True)]


def from_dask(
    X: Any, y: Any, sample_weight: Any, client: Any, patience: float, columns: Sequence[str] | None, memory: int
) -> DaskData:
    """Create the data of a Dask collection, of lists of blocks, or of Parquet files; see `as_data` for the parameters.

    Without a client, ``memory`` limits the bytes of the blocks that are cached between rounds.
    """
    client, patience = _usable_client(client), positive("patience", patience)
    if isinstance(X, str | os.PathLike):
        X, y, sample_weight = _from_parquet(X, y, sample_weight, columns)
    partitions = _partitions(X, y, sample_weight)
    return DaskData(LocalRounds(partitions, memory) if client is None else ClusterRounds(client, partitions, patience))


def _usable_client(client: Any) -> Any:
    """Return the client to use, None if there is none."""
    if client is None:
        try:
            from distributed import get_client

            client = get_client()
        except (ImportError, ValueError):
            return None
    if getattr(client, "asynchronous", True):
        raise TypeError(
            "`client` must be a synchronous `distributed.Client`, because a fit waits for its rounds, got "
            f"{type(client).__name__}; use `Client(address)`, inside of a loop with `asyncio.to_thread`."
        )
    from distributed import secede
    from distributed.threadpoolexecutor import thread_state

    if getattr(thread_state, "proceed", False):  # inside a task: release its thread to the tasks that it waits for
        secede()
    return client


def _from_parquet(path: Any, y: Any, sample_weight: Any, columns: Sequence[str] | None) -> tuple[Any, Any, Any]:
    """Return Dask data frames of features, targets and weights."""
    import dask.dataframe as dd

    if not isinstance(y, str | list | tuple) or not isinstance(sample_weight, str | None):
        raise TypeError("`y` and `sample_weight` must be names of columns where `X` is a folder and there is a client.")
    frame, used = dd.read_parquet(os.path.abspath(path)), {sample_weight, *([y] if isinstance(y, str) else y)}
    features = [name for name in frame.columns if name not in used] if columns is None else list(columns)
    return frame[features], frame[y], None if sample_weight is None else frame[sample_weight]


def _partitions(X: Any, y: Any, sample_weight: Any) -> list[Any]:
    """Return delayed tasks that build the partitions; they are pure, so that Dask can recompute them."""
    from dask import delayed

    blocks, rows = _blocks("X", X)
    targets = _blocks("y", y, rows)[0]
    weights = [None] * len(blocks) if sample_weight is None else _blocks("sample_weight", sample_weight, rows)[0]
    build = delayed(build_partition, pure=True)
    return [build(k, *parts) for k, parts in enumerate(zip(blocks, targets, weights, strict=True))]


def _blocks(name: str, values: Any, like: list[int | None] | None = None) -> tuple[list[Any], list[int | None]]:
    """Return the row blocks of a collection and their numbers of rows, None if unknown.

    If ``like`` gives the numbers of rows of the blocks of features, targets and weights are divided in the same way;
    they may then be in memory.
    """
    ends = np.cumsum([0, *like]) if like is not None and None not in like else None
    if ends is not None and hasattr(values, "rechunk") and values.ndim and values.shape[0] == ends[-1]:
        values = values.rechunk({0: tuple(like or ())})
    if is_dask_block(values) or (isinstance(values, list | tuple) and (ends is None or is_dask(values))):
        blocks: list[Any] = [values] if is_dask_block(values) else list(values)
        rows: list[int | None] = [None] * len(blocks)
    elif hasattr(values, "to_dask_array") and hasattr(values, "npartitions"):
        # The graph optimiser may merge small partitions, differently for X and y.
        blocks, rows = list(values.to_delayed(optimize_graph=False)), [None] * values.npartitions
    elif hasattr(values, "chunks") and values.ndim in ((2,) if like is None else (1, 2)):
        values = values.rechunk({1: -1}) if values.ndim == 2 and values.numblocks[1] > 1 else values
        known = [None if np.isnan(count) else int(count) for count in values.chunks[0]]
        blocks, rows = list(values.to_delayed().ravel()), known
    elif ends is not None:
        whole = values if hasattr(values, "iloc") else np.asarray(values)
        if len(whole) != ends[-1]:
            raise ValueError(f"`{name}` must have one entry for each of the {ends[-1]} rows of `X`, got {len(whole)}.")
        blocks, rows = [getattr(whole, "iloc", whole)[a:b] for a, b in pairwise(ends)], list(like or ())
    else:
        raise TypeError(
            f"`{name}` must be a Dask array or data frame, or a list of blocks, got {type(values).__name__}; use "
            "e.g. `dask.array.from_delayed`, or tell the sizes of the blocks of `X` by `compute_chunk_sizes`."
        )
    if like is not None and len(blocks) != len(like):
        raise ValueError(
            f"`{name}` must have a block for each of the {len(like)} blocks of `X`, got {len(blocks)}; cut both alike."
        )
    return blocks, rows
