"""Short hashes of arrays."""

from __future__ import annotations

import hashlib

import numpy as np

from projfree.checks import Array


def short_hash(head: str, *arrays: Array | None) -> str:
    """Return 16 hexadecimal digits of the SHA-256 hash of a text and of arrays; None is hashed as a dash."""
    digest = hashlib.sha256(head.encode())
    for array in arrays:
        digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]
