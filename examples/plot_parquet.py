"""
Larger than memory, from Parquet
================================

A folder of Parquet files is read chunk by chunk. The memory of a fit depends on the number of columns and
on the size of the buffers, not on the number of rows: here the folder grows, but the memory does not.
"""

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from projfree import LpBall, Objective, Squared, as_data, minimize

folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
truth, names = rng.standard_normal(40), [f"x{j}" for j in range(40)]


def add_file(k):
    """Write 10,000 more rows."""
    table = pd.DataFrame(rng.standard_normal((10_000, 40)), columns=names)
    table["y"] = table @ truth + rng.standard_normal(10_000)
    table.to_parquet(folder / f"part{k}.parquet", row_group_size=5_000)


# %%
# ``as_data`` takes the path of the folder and the name of the column with the targets.


def fit():
    f = Objective(Squared(), as_data(folder, "y", memory=4_500_000), fit_intercept=True)
    return minimize(f, LpBall(1.5, radius=5.0), tol=1e-6)


rows, size, peak = [], [], []
for k in range(7):
    add_file(k)
    if k == 0:
        fit()  # imports the reader of Parquet, whose memory is not meant here
    tracemalloc.start()
    result = fit()
    rows.append(10_000 * (k + 1))
    size.append(rows[-1] * 40 * 8 / 1e6)
    peak.append(tracemalloc.get_traced_memory()[1] / 1e6)
    tracemalloc.stop()
    print(f"{rows[-1]:7,} rows: {result.status}")

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(rows, size, marker="o", color="#d55e00", label="the table, if it were in memory")
ax.plot(rows, peak, marker="s", color="#0072b2", label="the most memory that the fit took")
ax.set(xlabel="rows", ylabel="MB", title="The fit does not hold the table", ylim=(0, None))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
assert peak[-1] < size[-1]
plt.show()
