"""The one flat table of results: a Parquet file, rewritten whole and atomically after every task."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from projfree.persist import atomic_write
from reproduction.base import Row

TEXT = ("experiment", "task", "data", "problem", "set", "solver", "variant", "measure", "note")
NUMBERS = ("p", "radius", "rho", "passes", "seconds", "value")
COUNTS = ("seed", "t", "n")
#: One row is one measured number, ``measure`` and ``value``; the rest says where it was measured.
COLUMNS = (*TEXT, *COUNTS, *NUMBERS, "stand_in")
FILE = "results.parquet"
#: The measures that come from a clock, apart from the next one.
TIMES = ("step", "time", "time at least", "projection", "call", "cheap way")
#: The measure of the row that says that a task is complete; its value is the wall time in seconds, its note the load.
DONE, FAILED = "wall", "failed"


class Store:
    """The results of one run in a folder.

    Parameters
    ----------
    folder : path
        Where ``results.parquet`` lives.
    facts : dict
        What every row shares: mode, machine, versions. Kept in the file's metadata.
    """

    def __init__(self, folder: str | os.PathLike[str], facts: dict[str, str]) -> None:
        self.path, self.facts, self.rows = Path(folder) / FILE, dict(facts), list[Row]()
        #: The order in which tasks stand in the file, so that parts merge to the table of one run.
        self.order: list[str] = []

    @classmethod
    def resumed(cls, folder: str | os.PathLike[str], facts: dict[str, str], without: Sequence[str] = ()) -> Store:
        """The store in a folder with what it holds, or a sentence on why it cannot be gone on with.

        ``without`` names experiments whose results are to be measured anew.
        """
        store = cls(folder, facts)
        if not store.path.exists():
            return store
        kept, rows = kept_facts(store.path), _opened(store.path).to_pylist()
        for name in ("mode", "projfree", "processor"):
            if kept.get(name) != facts.get(name):
                raise ValueError(
                    f"the results in {str(store.path)!r} are of another run: their {name} is {kept.get(name)}, now "
                    f"it is {facts.get(name)}; give another --out."
                )
        failed = {row["task"] for row in rows if row["measure"] == FAILED}
        store.rows = [row for row in rows if row["task"] not in failed and row["experiment"] not in without]
        if store.rows:
            store.facts |= _since(kept, facts)
        return store

    def done(self) -> set[str]:
        """The tasks that are complete."""
        return {row["task"] for row in self.rows if row["measure"] == DONE}

    def add(self, rows: Iterable[Row]) -> None:
        """Add the rows of a task and write the file."""
        self.rows.extend(rows)
        self.write()

    def write(self) -> None:
        """Write the table beside its place, then move it there in one step."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        place = {task: k for k, task in enumerate(self.order)}
        rows = sorted(self.rows, key=lambda row: place.get(row["task"], len(place)))
        columns = {name: [row.get(name) for row in rows] for name in COLUMNS}
        table = pa.table(columns, schema=_schema(pa, self.facts))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path) as beside:  # a full disk leaves the table of before
            pq.write_table(table, beside, compression="zstd")


def _since(kept: dict[str, str], now: dict[str, str]) -> dict[str, str]:
    """When a table was begun that is gone on with, and the commits of all runs that it comes from, in their order."""
    commits = dict.fromkeys(name for one in (kept, now) for name in one.get("commit", "").split(", ") if name)
    return {"since": kept.get("since", kept["date"]), "commit": ", ".join(commits)}


def _schema(pa: Any, facts: dict[str, str]) -> Any:
    fields = [(name, pa.string()) for name in TEXT]
    fields += [(name, pa.int64()) for name in COUNTS] + [(name, pa.float64()) for name in NUMBERS]
    return pa.schema([*fields, ("stand_in", pa.bool_())], metadata={"projfree": json.dumps(facts)})


def kept_facts(path: str | os.PathLike[str]) -> dict[str, str]:
    """The facts that the rows of a table share."""
    found: dict[str, str] = json.loads(_opened(path).schema.metadata[b"projfree"])
    return found


def _opened(path: str | os.PathLike[str]) -> Any:
    """The table of a file, or a sentence where it is damaged or of something else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # the system's own sentence, such as a file that may not be read
        raise ValueError(
            f"the table {str(path)!r} cannot be read ({str(error).rstrip('.')}); it is damaged: remove it and measure "
            "again, or give another --out."
        ) from error
    if b"projfree" not in (table.schema.metadata or {}) or not {*COLUMNS} <= {*table.column_names}:
        raise ValueError(f"the table {str(path)!r} was not written by the reproduction; give another --out.")
    return table


def read_store(path: str | os.PathLike[str]) -> tuple[Any, dict[str, str]]:
    """The table as a data frame, and the facts that its rows share."""
    import pandas as pd

    table = _opened(path)
    facts = json.loads(table.schema.metadata[b"projfree"])
    frame = pd.DataFrame({name: table[name].to_pylist() for name in COLUMNS})
    for name in TEXT:
        frame[name] = frame[name].where(frame[name].notna(), "")
    frame["stand_in"] = frame["stand_in"].fillna(False).astype(bool)
    return frame, facts
