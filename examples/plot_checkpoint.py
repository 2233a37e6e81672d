"""
Checkpoint and resume
=====================

A run stops after thirty iterations, and another process continues from the checkpoint that it wrote. The iterates
equal those of an uninterrupted run to the last bit.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

from projfree import Checkpoint, Logistic, LpBall, Objective, PrimalAveraging, as_data, minimize
from projfree.datasets import load_adult

adult = load_adult()
ball = LpBall(1.5, radius=2.0)


def run(iterations, folder, **settings):
    """A run on an objective of its own, as another process would have."""
    f = Objective(Logistic(), as_data(adult.X[:2000], adult.y[:2000]))
    return minimize(f, ball, tol=0.0, max_iter=iterations, callbacks=[Checkpoint(folder, every=15)], **settings)


# %%
# ``state`` names the folder; the checkpoint knows its solver.

first = tempfile.mkdtemp()
stopped = run(30, first, solver=PrimalAveraging())
resumed = run(90, first, state=first)
whole = run(90, tempfile.mkdtemp(), solver=PrimalAveraging())
print("equal to the last bit:", np.array_equal(resumed.w, whole.w))

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.semilogy(whole.trace["iteration"], whole.trace["gap"], color="0.8", linewidth=7, label="never stopped")
ax.semilogy(stopped.trace["iteration"], stopped.trace["gap"], color="#d55e00", linewidth=2, label="stopped")
after = resumed.trace["iteration"] > 30
ax.semilogy(
    resumed.trace["iteration"][after], resumed.trace["gap"][after], color="#0072b2", linewidth=2, label="resumed"
)
ax.axvline(30, color="0.5", linestyle=":", linewidth=1)
ax.set(xlabel="iteration", ylabel="certified gap", title="A resumed run goes on where the stopped one was")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
assert np.array_equal(resumed.w, whole.w)
plt.show()
