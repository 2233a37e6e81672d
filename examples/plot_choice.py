"""
Choosing a radius by one standard error
=======================================

The scores of folds vary. The one-standard-error rule chooses the smallest radius whose mean score is within one
standard error of the best: a simpler model that is not noticeably worse.
"""

import matplotlib.pyplot as plt
import pandas as pd

from projfree import ConstrainedRegressorCV
from projfree.datasets import load_year_sample

songs = load_year_sample()
X = pd.DataFrame(songs.X, columns=songs.feature_names)
search = ConstrainedRegressorCV(p=[1.0, 1.5, 2.0], radii=20, rule="one_standard_error")
search.fit(X[:600], songs.y[:600])
test = search.score(X[5000:], songs.y[5000:])
print(f"chosen: p = {search.p_:g}, radius {search.radius_:.2f}, which amounts to a penalty of {search.multiplier_:.3g}")
print(
    f"R^2 {search.best_score_:.3f} over folds, {test:.3f} on test songs; proven gap {search.result_.relative_gap:.0e}"
)

figure, (above, below) = plt.subplots(2, 1, figsize=(8, 8.4), layout="constrained")
search.plot_scores(above)
above.set_ylim(-0.2, 0.25)
search.plot_path(below, most=8)
figure.suptitle("The smallest radius whose score is within one standard error of the best")

assert test > 0.05
plt.show()
