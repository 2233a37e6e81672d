"""Fits on a cluster: Parquet files stay where they are, and workers read them."""

from __future__ import annotations

import logging
import re
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from projfree.cli.csv_text import refuse_twice
from projfree.cli.options import CLASSES
from projfree.cli.tables import check_path, column_of
from projfree.data import as_data
from projfree.data.sources.arrow import open_parquet, parquet_files


@dataclass(frozen=True, eq=False)
class ClusterRows:
    """The rows of Parquet files, a partition for each file, and the loss for their targets."""

    whole: Any
    loss: str
    columns: list[str]
    remarks: tuple[str, ...] = ()

    def parts(self, hold_out: float, seed: int) -> tuple[Any, Any]:
        """Rows to fit and rows to score, the second None where there are none."""
        return self.whole.parted(hold_out, seed) if hold_out else (self.whole, None)


@contextmanager
def cluster_at(where: str) -> Iterator[Any]:
    """A client of the cluster that ``--cluster`` names: an address, or workers on this machine for the time being."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ModuleNotFoundError("--cluster needs Dask; install it with `pip install 'projfree[dask]'`.") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, _, count = where.partition(":")
        if here != "local":
            if not re.fullmatch(r"(\w+://)?[^/\s]+:\d+", where):
                raise ValueError(_wrong(where))
            with Client(where, timeout=20) as client:
                yield client
            return
        if where != "local" and not (count.isdecimal() and int(count)):
            raise ValueError(_wrong(where))
        workers = {"n_workers": int(count) if count else None, "threads_per_worker": 1}
        quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
        with LocalCluster(**workers, **quiet) as cluster, Client(cluster) as client:
            _let_ignore_interrupts(client)
            yield client


def _let_ignore_interrupts(client: Any) -> None:
    """Ctrl-C in a terminal reaches workers too: they live on until the command has kept its state, and ends them."""
    from distributed import WorkerPlugin

    class Uninterrupted(WorkerPlugin):  # type: ignore[misc]  # Dask has no types; local, so that it travels by value
        name = "projfree-uninterrupted"

        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    client.register_plugin(Uninterrupted())


def _wrong(where: str) -> str:
    return f"--cluster must be tcp://host:port, local or local:workers, got {where}."


def cluster_rows(client: Any, path: Path, target: str, loss: str, drop: Sequence[str] | None) -> ClusterRows:
    """The rows of a Parquet file or folder, read by workers."""
    if not path.is_dir() and check_path(path) != ".parquet":
        raise ValueError(f"--cluster needs a Parquet file or a folder of those, got {str(path)!r}; convert it first.")
    schema = open_parquet(parquet_files(path)[0]).schema_arrow
    refuse_twice(list(schema.names), path)
    column = column_of(list(schema.names), target, "--target", path)
    gone = {column, *(column_of(list(schema.names), one, "--drop", path) for one in drop or [])}
    names = [name for name in schema.names if name not in gone]
    kind = str(schema.field(column).type)
    words = not kind.startswith(("int", "uint", "float", "double", "halffloat"))
    chosen = loss if loss != "auto" else "logistic" if words else "squared"
    if words and chosen not in CLASSES:
        raise ValueError(f"column {column!r} holds {kind}; for classes use --loss logistic.")
    data = as_data(path, column, columns=names, client=client)
    return ClusterRows(data, chosen, names, (data.about_rounds(),))
