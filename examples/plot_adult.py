"""
Who earns more than 50,000 dollars?
===================================

Classification on Adult, with the norm and the radius chosen by cross-validation: how the score depends on the
radius, and which coefficients grow with it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from projfree import ConstrainedClassifierCV
from projfree.datasets import load_adult

adult = load_adult()
X = pd.DataFrame(adult.X, columns=adult.feature_names)
y = np.where(adult.y > 0, ">50K", "<=50K")
train, test = slice(None, 6000), slice(adult.n_train, None)

search = ConstrainedClassifierCV(
    p=[1.0, 2.0], radii=10, cv=3, scoring="neg_log_loss", rule="one_standard_error", tol=1e-4
).fit(X[train], y[train])
accuracy = float(np.mean(search.predict(X[test]) == y[test]))  # `score` is the negative log loss, as asked for
share = float(np.mean(y[test] == "<=50K"))
print(f"chosen: p = {search.p_:g}, radius {search.radius_:.2f}, proven gap {search.result_.relative_gap:.0e}")
print(f"test accuracy {accuracy:.3f}; the larger class alone gives {share:.3f}")

# %%
# One standard error below the best score is the choice that asks for the smallest radius.

figure, (above, below) = plt.subplots(2, 1, figsize=(8, 8.4), layout="constrained")
search.plot_scores(above)
above.set_ylabel("negative log loss")
search.plot_path(below, most=8)
figure.suptitle("Beyond the best radius, rare countries of birth get large coefficients")

assert accuracy > share + 0.07
plt.show()
