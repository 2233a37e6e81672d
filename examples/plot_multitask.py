"""
Tasks that share directions
===========================

One regression per school, with the matrix of all coefficients in a ball of the nuclear norm. If the coefficients of
all schools lie near a few common directions, the nuclear norm finds them. The example uses the School data if
``PROJFREE_DATA`` names a folder with them, otherwise tasks generated from two hidden factors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from projfree import ConstrainedRegressorCV
from projfree.datasets import load_school

rng = np.random.default_rng(0)
try:
    school = load_school()
    few = np.flatnonzero(school.task < 30)
    X, y, task, name = school.X[few], school.y[few], school.task[few], "30 schools of Inner London"
except FileNotFoundError:
    print("The School data are not here. Drawn tasks take their place.")
    hidden = rng.standard_normal((2, 15))
    weights = rng.standard_normal((25, 2)) @ hidden
    task = np.repeat(np.arange(25), 45)
    X, name = rng.standard_normal((len(task), 15)), "25 drawn tasks with two hidden factors"
    y = np.einsum("ij,ij->i", X, weights[task]) + 4 * rng.standard_normal(len(task))

train = rng.uniform(size=len(y)) < 0.7
X = StandardScaler().fit(X[train]).transform(X)  # for all methods alike
table = np.column_stack([X, task])


def explained(guess: np.ndarray) -> float:
    left, spread = y[~train] - guess, y[~train] - y[~train].mean()
    return 1.0 - float(left @ left / (spread @ spread))


def independent(alpha: float) -> float:
    guess = np.empty(int((~train).sum()))
    for t in np.unique(task):
        own, asked = train & (task == t), task[~train] == t
        guess[asked] = Ridge(alpha=alpha).fit(X[own], y[own]).predict(X[~train][asked])
    return explained(guess)


scores = {"independent ridge\n(best penalty on the test rows)": max(map(independent, np.geomspace(1, 1000, 7)))}
settings = {"standardize": False, "task": X.shape[1], "radii": np.geomspace(5, 150, 7), "cv": 3, "tol": 1e-3}
found = {}
for label, parameters in {
    "group ball, p = 2, q = 1": {"norm": "group", "p": 2.0},
    "Schatten ball, p = 1.5": {"norm": "schatten", "p": 1.5},
    "Schatten ball, p = 1": {"norm": "schatten", "p": 1.0},
}.items():
    found[label] = ConstrainedRegressorCV(**parameters, **settings).fit(table[train], y[train])
    scores[label] = explained(found[label].predict(table[~train]))
for label, score in scores.items():
    print(f"{label.splitlines()[0]:26} explains {score:.1%} of the variance of the test rows")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
colours = ["0.7", "#e69f00", "#56b4e9", "#0072b2"]
left.barh(list(scores), [100 * s for s in scores.values()], color=colours)
left.set(xlabel="explained variance on test rows, %", title=name)
for colour, (label, model) in zip(colours[1:], found.items(), strict=True):
    values = np.linalg.svd(model.coef_, compute_uv=False)
    right.plot(np.arange(1, len(values) + 1), values / values[0], marker=".", color=colour, label=label)
right.set(xlabel="number", ylabel="singular value, relative", title="how many directions the tasks share")
right.legend(frameon=False)
figure.suptitle("A norm that prefers few common directions predicts best")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)

best = max(scores[label] for label in found)
assert best > scores["independent ridge\n(best penalty on the test rows)"]
plt.show()
