"""The packaged sample of YearPredictionMSD, standardised."""

from benchopt import BaseDataset

from projfree.datasets import load_year_sample


class Dataset(BaseDataset):
    """7,000 songs with 90 features."""

    name = "year sample"
    requirements = ["pip::projfree"]

    def get_data(self):
        """Years are centred, because the objective has no intercept."""
        songs = load_year_sample()
        return {"X": songs.X, "y": songs.y - songs.y.mean()}
