"""Plots of coefficients and scores against the radius, for the cross-validated estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

#: Colours for readers with colour vision deficiency (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442")


def _axes(ax: Any, radius: float) -> Any:
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xscale("log")
    ax.set_xlabel("radius")
    ax.axvline(radius, color="0.3", linestyle=":", linewidth=1.2)
    return ax


def plot_path(model: Any, ax: Any = None, *, most: int = 10) -> Any:
    """Plot the coefficients against the radius for the chosen p, and return the axes.

    Parameters
    ----------
    ax : matplotlib axes, optional
    most : int
        The number of coefficients, the largest ones at the chosen radius, to draw in colour and to label.
    """
    check_is_fitted(model, "path_")
    ax, path, names = _axes(ax, model.radius_), model.path_, model._feature_names()
    coefs, d = path.coefs.reshape(len(path.radii), -1), path.coefs.shape[-1]
    if coefs.shape[1] > d:
        names = [f"{name}, {output}" for output in model._output_names(coefs.shape[1] // d) for name in names]
    chosen = int(np.argmin(np.abs(path.radii - model.radius_)))
    order = np.argsort(-np.abs(coefs[chosen]), kind="stable")
    ax.plot(path.radii, coefs[:, order[most:]], color="0.8", linewidth=0.8, zorder=1)
    for rank, j in enumerate(order[:most]):
        style = {"color": COLOURS[rank % 7], "linestyle": ("-", "--", ":")[rank // 7 % 3], "linewidth": 1.6}
        ax.plot(path.radii, coefs[:, j], **style, label=names[j])
    ax.set(ylabel="coefficient", title=f"coefficients for p = {path.p:g} (dotted: the choice)")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", frameon=False)
    return ax


def plot_scores(model: Any, ax: Any = None) -> Any:
    """Plot the mean score and its standard error against the radius for each p, and return the axes."""
    check_is_fitted(model, "path_")
    ax = _axes(ax, model.radius_)
    folds = model.scores_.shape[2]
    for k, (p, radii, scores) in enumerate(zip(model._exponents(), model.radii_, model.scores_, strict=True)):
        mean, error = scores.mean(axis=1), scores.std(axis=1, ddof=1 if folds > 1 else 0) / np.sqrt(folds)
        colour = COLOURS[k % 7]
        ax.plot(radii, mean, color=colour, marker=".", linewidth=1.6, label=f"p = {p:g}")
        ax.fill_between(radii, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
    ax.set(ylabel="score", title=f"mean score over {folds} folds, with one standard error")
    ax.legend(frameon=False)
    return ax
