"""The order of the gallery."""

from __future__ import annotations

from pathlib import Path

ORDER = (
    *("sparse", "alpha_radius", "robust", "multitask", "groups", "softmax", "choice", "adult"),
    *("certificate", "geometries", "stochastic", "oracle", "portfolio", "fairness", "jax", "parquet", "checkpoint"),
    *("films", "new_user"),
)


class Position:
    """What sphinx-gallery sorts by: the place of an example in `ORDER`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return type(self).__name__

    def __call__(self, filename: str) -> int:
        return ORDER.index(Path(filename).stem.removeprefix("plot_"))
