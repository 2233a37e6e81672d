"""
Films: from ratings to recommendations
======================================

Some people have rated some films. Completing the matrix of ratings predicts the rating of every pair, and ranks the
films that a person is likely to watch and to like. Held-out ratings check the predictions: the higher the
prediction, the higher the rating.

The ratings are generated, and the titles are invented. If the environment variable ``PROJFREE_DATA`` names a folder
with MovieLens 1M, the example uses its ratings and titles.
"""

import os
from itertools import pairwise, product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from projfree import MatrixCompletion
from projfree.datasets import load_movielens, movielens_stand_in

KINDS, PEOPLE, PLACES = (
    words.split()
    for words in (
        "Quiet Last Broken Golden Hidden Silent Distant Crooked Burning Gentle Northern Forgotten",
        "Gardener Pilot Widow Clockmaker Detective Violinist Postman Thief Teacher Captain Baker Ghost",
        "Lisbon Tromso Kyoto Dublin Cairo Lima Oslo Prague Havana Quebec Naples Riga",
    )
)


def films():
    """Ratings, and the title of each column."""
    names = Path(os.environ.get("PROJFREE_DATA", "nowhere")) / "ml-1m" / "movies.dat"
    if not names.exists():
        invented = [f"The {kind} {person} of {place}" for kind, person, place in product(KINDS, PEOPLE, PLACES)]
        ratings = movielens_stand_in("100k")
        return ratings, np.random.default_rng(0).permutation(invented)[: ratings.shape[1]]
    lines = (line.split("::") for line in names.read_text(encoding="latin-1").splitlines())
    titles = {int(number): title for number, title, _ in lines}
    ratings = load_movielens("1m", download=False)
    return ratings, np.array([titles[number] for number in ratings.col_ids])


# %%
# A tenth of the ratings is held out. The radius is chosen inside the others.

ratings, titles = films()
order = np.random.default_rng(1).permutation(len(ratings.values))
held, kept = np.split(order, [len(order) // 10])
users, items, stars = ratings.rows, titles[ratings.cols], ratings.values
model = MatrixCompletion(random_state=0).fit((users[kept], items[kept], stars[kept]))
print(f"{ratings.name}: radius {model.radius_:.0f}, chosen on held-out ratings")

# %%
# What one person has rated highest, and what the model recommends to them.

person = 7
seen = kept[users[kept] == person]
print("rated highest:", *(items[k] for k in seen[np.argsort(-stars[seen])][:3]), sep="\n  ")
recommended, scores = model.recommend(person, n=5)
print("recommended:", *(f"{title} ({score:.1f})" for title, score in zip(recommended, scores, strict=True)), sep="\n  ")

# %%
# The held-out ratings in ten groups of equal size, from the lowest predictions to the highest.

predicted = model.predict((users[held], items[held]))
groups = np.array_split(held[np.argsort(predicted)], 10)
given = [stars[group].mean() for group in groups]
expected = [part.mean() for part in np.array_split(np.sort(predicted), 10)]

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.bar(range(10), given, color="#0072b2", width=0.7, label="mean of the ratings given")
ax.plot(range(10), expected, "o-", color="#d55e00", label="mean of the predictions")
ax.axhline(stars.mean(), color="0.5", linestyle=":", label="mean of all ratings")
ax.set(xlabel="tenth of the held-out ratings, ordered by prediction", ylabel="stars", ylim=(1, 5))
ax.set_xticks(range(10), [f"{k + 1}" for k in range(10)])
ax.set_title("Where the model expects more stars, people gave more stars")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
assert all(low < high for low, high in pairwise(given))
plt.show()
