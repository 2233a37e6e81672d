"""Checks and Hypothesis strategies for new losses, sets and data backends; those of losses and sets need Hypothesis."""

from projfree.testing.sealed import SealedData

__all__ = ["SealedData"]
