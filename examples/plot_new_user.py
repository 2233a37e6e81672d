"""
A new user's first ratings
==========================

A new user rates a few films after the model was fitted. ``fold_in`` predicts all other ratings at once, without
another fit: it regresses the ratings on the factors of the films. The figure shows how the error decreases with the
number of ratings, over many new users.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from projfree import MatrixCompletion
from projfree.datasets import movielens_stand_in

ratings = movielens_stand_in("100k")
counts = np.bincount(ratings.rows)
new = np.flatnonzero(counts >= 100)[:120]  # users who are kept apart, with enough ratings to judge by
fitted = ~np.isin(ratings.rows, new)
model = MatrixCompletion(random_state=0)
model.fit((ratings.rows[fitted], ratings.cols[fitted], ratings.values[fitted]))

# %%
# One new user: five ratings, and what is recommended then.

first = {10: 5.0, 25: 4.0, 100: 1.0, 300: 5.0, 700: 2.0}
best, _ = model.fold_in(first, n=5)
print("five ratings:", first)
print("recommended:", best.tolist())

# %%
# Many new users: the first ratings are given, the last fifty are predicted.

sizes = (0, 1, 2, 5, 10, 20, 50)
errors = {size: [] for size in sizes}
place = {int(item): k for k, item in enumerate(model.item_ids_)}
for user in new:
    mine = np.flatnonzero(ratings.rows == user)
    films, stars = [int(film) for film in ratings.cols[mine]], ratings.values[mine]
    known = [k for k, film in enumerate(films) if film in place]
    last, early = known[-50:], known[:-50]
    for size in sizes:
        told = {films[k]: stars[k] for k in early[:size]}
        predictions = model.fold_in(told) if told else None
        for k in last:
            guess = model.predict([(-1, films[k])])[0] if predictions is None else predictions[place[films[k]]]
            errors[size].append(stars[k] - guess)
rmse = [float(np.sqrt(np.mean(np.square(errors[size])))) for size in sizes]
for size, error in zip(sizes, rmse, strict=True):
    print(f"{size:3d} ratings: error {error:.3f} stars")

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(range(len(sizes)), rmse, "o-", color="#0072b2")
ax.set_xticks(range(len(sizes)), [str(size) for size in sizes])
ax.set(xlabel="ratings that the new user has given", ylabel="root mean squared error of the others, stars")
ax.annotate("offsets of the films alone", (0, rmse[0]), xytext=(0.5, rmse[0]), va="center", color="0.35")
ax.set_title("Each of the first ratings makes the predictions for a new user better")
ax.spines[["top", "right"]].set_visible(False)
assert all(more < less for less, more in pairwise(rmse))
plt.show()
