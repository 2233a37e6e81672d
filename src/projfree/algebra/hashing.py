"""Short hashes that tell arrays from others."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from projfree.checks import Array

#: The 32-bit words of a block that `condensed` makes one number of.
WORDS = 8192


@lru_cache
def _keys() -> Array:
    """A random number for each word of a block: raw bits, which are the same in every version of NumPy."""
    keys: Array = np.random.PCG64(2014).random_raw(WORDS)
    return keys


def condensed(array: Array) -> tuple[Array, Array]:
    r"""A number for each block of an array, and the bytes behind the last block: faster to hash than the array.

    .. math:: h = \sum_i k_i x_i \bmod 2^{64}

    over the words :math:`x_i` of a block, with fixed random numbers :math:`k_i`. Two blocks that differ, in whatever
    way, have the same number for a share of at most :math:`2^{-32}` of all keys (D. Lemire and O. Kaser, "Strongly
    universal string hashing is fast", The Computer Journal 57, 2014). It takes a quarter of the time of SHA-256.
    """
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    end = len(flat) // (4 * WORDS) * 4 * WORDS
    blocks = flat[:end].view(np.uint32).reshape(-1, WORDS)
    return np.einsum("ij,j->i", blocks, _keys()), flat[end:]


def short_hash(head: str, *arrays: Array | None, absent: bytes = b"") -> str:
    """Sixteen digits of the hash of a text and the bytes of some arrays; ``absent`` stands for each that is None."""
    digest = hashlib.sha256(head.encode())
    for array in arrays:
        digest.update(absent if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]
