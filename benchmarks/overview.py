"""One table over all results: what was measured, on which data, beside what, and the command that measures it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

Tree = dict[str, Any]
#: What is measured, the data, what projfree needs, and how that compares.
Line = tuple[str, str, str, str]
HEADS = ("measured", "data", "projfree", "compared with")
#: Data sets that come with scikit-learn.
SKLEARN = ("diabetes", "breast cancer", "wine", "digits")
KINDS = {
    "ridge": "ridge regression",
    "lasso": "lasso",
    "logistic": "logistic regression",
    "softmax": "softmax regression, p = 1",
    "multitask": "multi-task lasso",
    "group": "group lasso",
    "tasks": "multi-task lasso",
}


def span(values: Iterable[float | None], unit: str = "") -> str:
    """The smallest and the largest number, with two digits."""
    known = sorted(value for value in values if value is not None)
    ends = list(dict.fromkeys(number(value) for value in (known[0], known[-1]))) if known else ["none"]
    return " to ".join(ends) + (f" {unit}" if unit else "")


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def names(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def passes(tree: Tree) -> list[Line]:
    ratios = {row["pass"]: row["ratio"] for row in tree["ratios"]}
    dense = "standard normal, 515,345 x 90"
    reads = {"logistic": "logistic loss", "squared": "squared loss", "softmax, 8 classes": "softmax with 8 classes"}
    lines = [
        (f"value and gradient, {what}", dense, f"{number(ratios[name])} reads", "one read of the same array")
        for name, what in reads.items()
    ]
    sparse = next(name for name in ratios if name.startswith("CSR"))
    text = f"random CSR, {sparse.removeprefix('CSR ').removesuffix(', over SciPy')}"
    lines.append(
        ("value and gradient, sparse", text, f"{number(ratios[sparse])} times", "`X @ w` and `X.T @ r` of SciPy")
    )
    return lines


def small(tree: Tree) -> list[Line]:
    figures, lines = tree["figures"], []
    for name, found in figures.items():
        ours, over, peer = name.partition(", over ")
        if over and ours.startswith("Constrained"):
            time = f"{found['behind'].split(' over ')[0]} ms"
            lines.append(
                (
                    f"`{ours.split()[0]}`, p = {ours[-1]}",
                    "generated, 200 x 10",
                    time,
                    f"{number(found['figure'])} times `{peer}`",
                )
            )
    first = figures["first example, nothing compiled (s)"]["figure"]
    return [*lines, ("first example of the README in a new process", "Adult", f"{number(first)} s", "")]


def defaults(tree: Tree) -> list[Line]:
    lines = []
    for p, what in ((2, "default estimators"), (1, "default estimators, p = 1")):
        rows = [row for row in tree["models"] if row["p"] == p]
        kept = dict.fromkeys(row["data"] for row in rows)
        made = ", ".join(name.replace("text, ", "texts as ") for name in kept if name not in SKLEARN)
        data = f"{', '.join(name for name in kept if name in SKLEARN)}; generated: {made}"
        slow = max(rows, key=lambda row: row["ratio"])
        peers = names(f"`{row['peer']}`" if row["peer"][0].isupper() else row["peer"] for row in rows)
        beside = f"{span(row['ratio'] for row in rows)} times scikit-learn ({peers}); most on {slow['data']}"
        lines.append((what, data, span((row["seconds"] for row in rows), "s"), beside))
    return lines


def search(tree: Tree) -> list[Line]:
    peers = {
        "ridge": "RidgeCV",
        "lasso": "LassoCV",
        "multitask": "MultiTaskLassoCV",
        "logistic": "LogisticRegressionCV",
    }
    lines = []
    for kind, peer in peers.items():
        rows = [row for row in tree["search"] if row["kind"] == kind]
        data = "; ".join(dict.fromkeys(row["data"] for row in rows))
        data = data if kind == "logistic" else f"generated: {data}"
        ratio = f"{span(row['ratio'] for row in rows)} times `{peer}`"
        lines.append((f"cross-validation, {KINDS[kind]}", data, span((row["ours, CPU s"] for row in rows), "s"), ratio))
    return lines


def sparse(tree: Tree) -> list[Line]:
    def kind(row: Tree) -> tuple[str, bool]:
        return row["problem"].split(",")[0], "path" in row["problem"]

    lines = []
    for (name, path), group in groupby(sorted(tree["problems"], key=kind), kind):
        rows = list(group)
        data = f"generated: {names(row['problem'].split(',')[1].strip() for row in rows)}"
        for level in ("0.0001", "1e-07"):
            at = [row[level] for row in rows if row.get(level)]
            beside = f"{span(row['ratio'] for row in at)} times {names(row['best'] for row in at if row['best'])}"
            what = f"{KINDS[name]}{', path of 50 radii' if path else ''}, to {float(level):.0e}".replace("e-0", "e-")
            lines.append((what, data, span((row["ours"] for row in at), "s"), beside))
    return lines


def completion(tree: Tree) -> list[Line]:
    ratings, lines = {"100k": "MovieLens-100K", "1m": "MovieLens-1M"}, []
    for key, data in ratings.items():
        rows = {row["method"]: row for row in tree["results"] if (row["data"], row["test part"]) == (key, "1/10")}
        beside = ", ".join(f"{each} {rows[each]['RMSE']:.4f}" for each in ("cmfrec", "surprise") if each in rows)
        lines.append(("error of ratings held out", data, f"RMSE {rows['projfree']['RMSE']:.4f}", beside))
    lists = {row["method"]: row["precision at 10"] for row in tree["ranking"] if row["data"] == "1m"}
    beside = f"implicit ALS {lists['implicit ALS']:.3f}, most popular {lists['popularity']:.3f}"
    lines.append(("precision of lists of 10", "MovieLens-1M", f"{lists['projfree']:.3f}", beside))
    for row in tree["fits"]:
        what = f"{row['CPU s']:.0f} s, {row['peak GB']:.1f} GB"
        lines.append(("fit with all defaults", f"generated: {row['ratings']:,} ratings", what, ""))
    return lines


def constraints(tree: Tree) -> list[Line]:
    lines = []
    for row in tree["problems"]:
        peers = {key.removesuffix(", s"): row[key] for key in row if key.endswith(", s") and not key.startswith("ours")}
        times = {name: f"{number(seconds)} s" for name, seconds in peers.items() if seconds is not None}
        if row.get("gap of CVXPY") == "failed":
            times["CVXPY"] = "failed"
        beside = ", ".join(f"{name} {time}" for name, time in times.items())
        lines.append(("linear constraints", row["problem"], f"{number(row['ours, s'])} s", beside))
    return lines


def cluster(tree: Tree) -> list[Line]:
    return [
        (
            "Primal Averaging on two Dask workers",
            f"generated: {row['rows']:,} x {row['columns']}",
            f"{number(row['measured, s'])} s",
            f"{number(row['by the model, s'])} s by the model",
        )
        for row in tree["check"]
    ]


#: In the order of the table.
LINES: dict[str, Callable[[Tree], list[Line]]] = {
    each.__name__: each for each in (defaults, search, sparse, completion, constraints, small, passes, cluster)
}


def overview(trees: dict[str, Tree]) -> tuple[tuple[str, ...], list[list[Any]]]:
    """Heads and cells of the one table."""
    measured = [(name, line) for name, lines in LINES.items() if name in trees for line in lines(trees[name])]
    return (*HEADS, "command", "date"), [
        [*line, f"`python benchmarks/{name}.py`", trees[name]["machine"]["date"][:10]] for name, line in measured
    ]
