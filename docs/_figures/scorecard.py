"""Coefficients of a scorecard on Adult with signs and an order, beside those of the ball alone."""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from projfree import ConstrainedClassifier
from projfree.datasets import load_adult

adult = load_adult()
X = pd.DataFrame(adult.X, columns=adult.feature_names)
schools = [
    f"education={name}" for name in ("9th", "10th", "11th", "12th", "HS-grad", "Bachelors", "Masters", "Doctorate")
]
signs = {"age": 1, "hours-per-week": 1, "capital-gain": 1}
plain = ConstrainedClassifier(radius=2.0).fit(X, adult.y)
card = ConstrainedClassifier(radius=2.0, order=[schools], signs=signs).fit(X, adult.y)

mpl.rcParams["svg.hashsalt"] = "projfree"  # the same figure, the same file
figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
places = np.arange(len(schools))
for model, color, label, shift in ((plain, "#d55e00", "the ball alone", -0.18), (card, "#0072b2", "ordered", 0.18)):
    ax.bar(places + shift, model.coef_frame()["coefficient"][schools], 0.36, color=color, label=label)
ax.set_xticks(places, [name.removeprefix("education=") for name in schools], rotation=30)
ax.set(ylabel="coefficient")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure.savefig(sys.argv[1], metadata={"Date": None})
