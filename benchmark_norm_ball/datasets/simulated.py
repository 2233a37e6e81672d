"""Gaussian features, a few of which matter."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Rows, columns and a seed."""

    name = "simulated"
    parameters = {"n_samples, n_features": [(500, 50), (2000, 200)], "seed": [0]}

    def get_data(self):
        """Features and real targets; their signs serve as labels."""
        rng = np.random.default_rng(self.seed)
        X = rng.standard_normal((self.n_samples, self.n_features))
        truth = np.where(np.arange(self.n_features) < 10, rng.standard_normal(self.n_features), 0.0)
        return {"X": X, "y": X @ truth + rng.standard_normal(self.n_samples)}
