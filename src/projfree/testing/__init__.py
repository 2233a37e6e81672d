"""Laws and strategies for those who add a loss, a set or a data backend; those of losses and sets need Hypothesis."""

from projfree.testing.sealed import SealedData

__all__ = ["SealedData"]
