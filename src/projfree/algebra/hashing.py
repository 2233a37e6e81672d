"""Short hashes that tell arrays from others."""

from __future__ import annotations

import hashlib

import numpy as np

from projfree.checks import Array


def short_hash(head: str, *arrays: Array | None) -> str:
    """Sixteen digits of the hash of a text and the bytes of some arrays; a dash stands for each that is None."""
    digest = hashlib.sha256(head.encode())
    for array in arrays:
        digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]
