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


def compiled(work: Pass, features: int, cut: Blocks, nbytes: int) -> Prepared | None:
    """The pass in compiled code; None for small data, and where there is no compiled form."""
    return None if nbytes < NATIVE_BYTES else prepare(work, features, cut.rows, cut.count)


def compiled_fold(work: Pass, data: LocalData, cut: Blocks, images: list[Array]) -> Prepared | None:
    """The fold of a step over images in compiled code; None for small data, and where there is no compiled form."""
    if data.nbytes < NATIVE_BYTES or len(images) > 1:
        return None
    return prepare(work, 0, cut.rows, cut.count)
