"""A convex function, two of its tangents and their average: each minimised over the set bounds the minimum."""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np


def f(w):
    return 0.6 * (w - 0.35) ** 2 + 0.25 * np.log(np.cosh(3 * w)) + 0.3


def slope(w):
    return 1.2 * (w - 0.35) + 0.75 * np.tanh(3 * w)


w = np.linspace(-1, 1, 401)
figure, ax = plt.subplots(figsize=(6.6, 4.0), layout="constrained")
ax.plot(w, f(w), color="black", linewidth=2, label="$f$")
lines = {z: f(z) + slope(z) * (w - z) for z in (-0.35, 0.3)}
average = 0.27 * lines[-0.35] + 0.73 * lines[0.3]
for (z, line), colour in zip(lines.items(), ("#e69f00", "#56b4e9"), strict=True):
    ax.plot(w, line, color=colour, linewidth=1.3, label=f"tangent at {z:g}")
    ax.plot(z, f(z), "o", color=colour)
    ax.plot(w[line.argmin()], line.min(), "v", color=colour, markersize=8)
ax.plot(w, average, color="#0072b2", linewidth=2, label="their average")
ax.plot(w[average.argmin()], average.min(), "v", color="#0072b2", markersize=9)
ax.axhline(f(w).min(), color="0.6", linestyle=":", linewidth=1)
ax.text(-0.99, f(w).min() + 0.02, "minimum over the set", color="0.4", fontsize="small")
ax.axhline(average.min(), color="#0072b2", linestyle=":", linewidth=1)
ax.text(-0.99, average.min() - 0.09, "bound of the average", color="#0072b2", fontsize="small")
ax.set(xlabel="$w$, with the set $-1 \\leq w \\leq 1$", ylim=(-0.9, 1.6), xlim=(-1.02, 1.02))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper center")
figure.savefig(sys.argv[1])
