"""
Primal Averaging and Frank-Wolfe on three geometries
====================================================

Both methods use the same oracle. Frank-Wolfe follows the tangent at its iterate, and zigzags around the minimum.
Primal Averaging follows an average of tangents, whose vertex hardly moves if the set is strongly convex. On a set
with corners and flat faces the vertex jumps, and the advantage is lost.
"""

from itertools import islice

import matplotlib.pyplot as plt
import numpy as np

from projfree import FrankWolfe, LpBall, OpenLoop, PrimalAveraging, QuadraticForm, iterate, minimize

H = np.array([[1.0, 0.55], [0.55, 0.5]])
f = QuadraticForm(H, H @ np.array([0.437, 0.871]))
solvers = {
    "Frank-Wolfe": (FrankWolfe(OpenLoop(2)), "#d55e00", "o"),
    "Primal Averaging": (PrimalAveraging(), "#0072b2", "s"),
}
shapes = {1.0: "$p = 1$: corners, flat sides", 1.5: "$p = 1.5$: round", 2.0: "$p = 2$: round"}
circle = np.array([[np.cos(a), np.sin(a)] for a in np.linspace(0, 2 * np.pi, 721)])


def error(w, best):
    return max(f(f.point(w)) - best.value, 1e-12) / abs(best.value)


# %%
# Twelve iterates in the plane above, the error of the best of up to a thousand below.

figure, axes = plt.subplots(2, 3, figsize=(9.5, 6.6), layout="constrained", height_ratios=[1.25, 1])
final = {}
for (p, title), (above, below) in zip(shapes.items(), axes.T, strict=True):
    ball = LpBall(p, radius=0.9)
    best = minimize(f, ball, tol=1e-14)
    border = circle * [[0.9 / ball.norm(c)] for c in circle]
    above.plot(*border.T, color="0.3", linewidth=1.2)
    for name, (solver, colour, mark) in solvers.items():
        points = np.array([state.x.w for state in islice(iterate(f, ball, solver), 1000)])
        above.plot(*points[1:13].T, marker=mark, markersize=4, linewidth=0.9, color=colour, label=name)
        errors = np.minimum.accumulate([error(w, best) for w in points])  # of the best iterate so far
        below.loglog(np.arange(1, 1001), errors, color=colour, linewidth=1.4)
        final[p, name] = errors[-1]
    above.plot(*best.w, "*", color="black", markersize=12, label="minimum", zorder=5)
    above.set(title=title, xlim=(-0.1, 1.0), ylim=(-0.1, 1.0), aspect="equal", xlabel="$w_1$", ylabel="$w_2$")
    below.set(xlabel="iteration", ylabel="relative error", ylim=(1e-9, 2))
axes[0, 2].legend(loc="lower left", frameon=False)
figure.suptitle("Where averages of gradients help: round sets")

# %%
# On the round sets the error of Primal Averaging is the smaller one.

for p in (1.5, 2.0):
    assert final[p, "Primal Averaging"] < final[p, "Frank-Wolfe"]
plt.show()
