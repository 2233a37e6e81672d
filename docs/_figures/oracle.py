"""Vertices that the oracle answers to gradients that turn a little: they jump over a flat set, not over a round one."""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from projfree import LpBall

turns = np.deg2rad(np.array([-52.0, -48.5, -45.5, -44.5, -41.5, -38.0]))
circle = np.column_stack([np.cos(np.linspace(0, 2 * np.pi, 721)), np.sin(np.linspace(0, 2 * np.pi, 721))])
colours = plt.get_cmap("viridis")(np.linspace(0.1, 0.85, len(turns)))

figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.9), layout="constrained")
for ax, p, title in zip(axes, (1.0, 1.5), ("$p = 1$: a corner, then another", "$p = 1.5$: neighbours"), strict=True):
    ball = LpBall(p, radius=1.0)
    ax.plot(*np.array([v / ball.norm(v) for v in circle]).T, color="0.3", linewidth=1.4)
    for turn, colour in zip(turns, colours, strict=True):
        g = -np.array([np.cos(turn), -np.sin(turn)])
        v = ball.lmo(g)
        ax.annotate("", xy=-0.45 * g, xytext=(0, 0), arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.4})
        ax.plot(*v, "o", color=colour, markersize=8, clip_on=False, zorder=5)
    ax.set(aspect="equal", title=title, xlim=(-0.25, 1.12), ylim=(-0.25, 1.12))
    ax.set_xticks([0, 1])
    ax.set_yticks([0, 1])
    ax.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1], bbox_inches="tight")
