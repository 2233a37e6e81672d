"""When a pass goes through compiled code: by sizes that are fixed beforehand, so that no clock decides digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projfree.checks import Array
from projfree.data.native import Prepared, prepare
from projfree.data.rows import Pass

if TYPE_CHECKING:
    from projfree.data.blocks import Blocks
    from projfree.data.local import LocalData

#: From this many bytes of X on, passes are compiled. That saves almost half of the time, 5 ms of a pass over so many
#: bytes, so that loading the code (0.3 s) pays after 60 passes, and compiling it (once) after some hundred.
NATIVE_BYTES = 1 << 26
#: Passes over smaller tables, from the first number of bytes on, are compiled once a workspace has read the second:
#: as much has then been lost as loading the code costs, and whoever has read so often is likely to go on.
SMALLER_BYTES, MUCH_READ = 1 << 25, 1 << 32


def pays(nbytes: int, n: int, read: int) -> bool:
    """Whether compiled code pays for a table of ``n`` rows of which so many rows were read before."""
    return nbytes >= NATIVE_BYTES or (nbytes >= SMALLER_BYTES and nbytes * (read / n) >= MUCH_READ)


def compiled(work: Pass, features: int, cut: Blocks, nbytes: int) -> Prepared | None:
    """The pass in compiled code; None for small data, and where there is no compiled form."""
    return prepare(work, features, cut.rows, cut.count) if pays(nbytes, work.n, work.read) else None


def compiled_fold(work: Pass, data: LocalData, cut: Blocks, images: list[Array]) -> Prepared | None:
    """The fold of a step over images in compiled code; None for small data, and where there is no compiled form."""
    if len(images) > 1 or not pays(data.nbytes, work.n, work.read):
        return None
    return prepare(work, 0, cut.rows, cut.count)
