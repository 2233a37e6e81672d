"""One table of matrix completion on MovieLens-1M: ours, peers that were run, and figures that others have published."""

from __future__ import annotations

from record import commit, committed

METHODS = {
    "projfree": "one model, its radius and implicit features chosen by the fit",
    "cmfrec-tuned": "cmfrec, 100 factors, implicit features, penalty and their weight tuned",
    "surprise-tuned": "Surprise SVD, 100 factors, 100 epochs, penalty tuned",
}
#: On splits of their own; neural, without a certificate.
PUBLISHED = {"I-AutoRec": 0.831, "SparseFC": 0.823, "GLocal-K": 0.8227}
OURS, PEER = "projfree", "cmfrec-tuned"


def rows(results):
    """A row for each method, run or not, and for each published figure."""
    found = {row["method"]: row for row in results if row["data"] == "1m" and row["test part"] == "1/10"}
    out = [_row(name, what, found.get(name), "") for name, what in METHODS.items()]
    return out + [_row(name, "neural", {}, figure) for name, figure in PUBLISHED.items()]


def _row(name, what, row, published):
    """A row; a method that was not run is missing, and so is what a published figure does not say."""
    keys = {"RMSE": "RMSE", "seeds": "seeds", "CPU s": "median CPU s", "note": "note"}
    cells = {key: None if row is None else row.get(name, "") for key, name in keys.items()}
    note = cells.pop("note") or ""
    return {"method": name, "what": what} | cells | {"published, not run here": published, "note": note}


def margin(results):
    """How much lower our mean RMSE is than that of the peer, over the seeds that both have; missing where none is."""
    found = {row["method"]: row["by seed"] for row in results if "by seed" in row and row["data"] == "1m"}
    seeds = sorted(set(found.get(OURS, {})) & set(found.get(PEER, {})))
    lower = [found[PEER][seed] - found[OURS][seed] for seed in seeds]
    return {"seeds": ", ".join(seeds), "lower by": sum(lower) / len(lower) if lower else None}


def write():
    """Write the table out of the results that the repository holds."""
    before = committed("completion")
    results = before.get("results", [])
    commit("completion", before | {"table": rows(results), "margin": margin(results)})
