"""What is shown of the results of each benchmark, in this order."""

from __future__ import annotations

from report_tables import Report, Shown


def _sparse(level: str) -> dict[str, str]:
    at = {"ours, s": "ours", "gap": "gap", "best peer": "best", "its time, s": "peer", "ratio": "ratio"}
    at |= {"target": "target", "over liblinear": "over liblinear", "met": "met"}
    return {"problem": "problem", "nonzeros": "nonzeros"} | {head: f"{level}/{key}" for head, key in at.items()}


REPORTS = {
    "sparse": Report(
        "Sparse and wide problems, against the best peer",
        "projfree stops when its certificate proves the gap. The other libraries have no such certificate: each is "
        "timed at the loosest of its own tolerances at which its solution is good enough, with the penalty that is "
        "equivalent to the radius. A ratio below one means that projfree is faster; it is missing if nothing was "
        "proved in time. The column before the last is the ratio to liblinear at its tolerances 1e-3 and 1e-6, "
        "whatever its gap. Problems with a star were used to tune the solvers. Rows were measured at different times: "
        "the JSON file has the date, commit and load of each, and the libraries that failed, with the reason.",
        "python benchmarks/sparse.py --commit",
        (
            Shown("CPU seconds to a relative error of 1e-7", "problems", _sparse("1e-07")),
            Shown("CPU seconds to a relative error of 1e-4", "problems", _sparse("0.0001")),
            Shown("Seconds of the clock of single runs", "limits", without=("commit", "load", "date")),
        ),
    ),
    "search": Report(
        "Searches with default settings, against scikit-learn",
        "Both libraries choose the penalty from their default grids by 5-fold cross-validation; `LogisticRegressionCV` "
        "tries 20 values, and `RidgeCV` uses leave-one-out in closed form, with 13 penalties. Scores are those on "
        "held-out rows. `as fast and as good` means at most 2 times the time of `LassoCV` and `MultiTaskLassoCV`, "
        "3 times that of `LogisticRegressionCV` and 5 times that of `RidgeCV`, and a score at most 0.002 lower.",
        "python benchmarks/search.py --commit",
        (Shown("Searches", "search"),),
    ),
    "completion": Report(
        "Matrix completion",
        "For each seed a random tenth of the ratings is held out. projfree chooses its settings on the other ratings. "
        "The settings of cmfrec and Surprise were chosen among 30 and 3 on the training part of the first seed, for "
        "all seeds, which favours them. Rows were measured at different times, each with its date.",
        "python benchmarks/completion.py rmse 1m --seeds 0 1 2 3 4 --method NAME --commit",
        (
            Shown("Mean RMSE over the seeds of the split", "results", without=("by seed", "median s", "threads")),
            Shown(
                "Lists of ten items, for users with a held-out rating of at least the mean "
                "(`benchmarks/completion.py ranking 1m --commit`)",
                "ranking",
            ),
            Shown("Mean RMSE for users or films without ratings in the fit (`completion.py cold 1m`)", "cold"),
            Shown(
                "Fits with all defaults, including the choice of the radius and the certificate, to generated ratings "
                "of 140,000 users and 27,000 films (`benchmarks/completion.py fit --ratings N --commit`)",
                "fits",
            ),
            Shown(
                "Recommendations for all users, compared with the matrix product of the factors alone "
                "(`benchmarks/completion.py lists --commit`)",
                "lists",
            ),
            Shown(
                "Fits to a certified relative gap, without features, at the radius that a default fit chooses "
                "(`benchmarks/completion.py proved 1m --commit`)",
                "proved",
            ),
        ),
    ),
    "defaults": Report(
        "Default models beside those of scikit-learn",
        "Both estimators minimise the same function. Times are the smallest of interleaved fits on one thread. The "
        "difference is the largest difference of linear predictions, divided by the largest prediction. `liblinear` is "
        "fitted without an intercept. The texts are generated, with Zipf's word frequencies.",
        "python benchmarks/defaults.py --commit",
        (
            Shown(
                "Seconds, and R2 or accuracy on held-out rows",
                "models",
                {
                    "data": "data",
                    "rows": "rows",
                    "features": "features",
                    "p": "p",
                    "peer": "peer",
                    "ours": "seconds",
                    "peer's": "peer seconds",
                    "ratio": "ratio",
                    "difference": "difference",
                    "score": "score",
                    "peer's score": "peer score",
                },
            ),
        ),
    ),
    "auto": Report(
        "The plan on some problems",
        "Every solver that applies is run on each problem. Those that the best one does in under 50 ms are not judged.",
        "python benchmarks/auto.py --commit",
        (
            Shown(
                "Seconds of the planned solver over those of the best one; under 50 ms not judged",
                "problems",
                {"problem": "problem", "planned": "planned", "best": "best", "ratio": "ratio", "judged": "judged"},
                named=("planned", "best"),
            ),
        ),
    ),
    "constraints": Report(
        "Linear constraints inside a ball, against CVXPY, glum and scikit-lego",
        "Seconds of the processor from arrays to coefficients, the best of interleaved runs, to a certified 1e-6. "
        "CVXPY uses Clarabel, for 60 seconds at most; its gap is that of its value to our bound, below zero where its "
        "point is outside. "
        "glum has a penalty, whose radius ours is given, and scikit-lego has no ball.",
        "python benchmarks/constraints.py --commit",
        (Shown("Problems", "problems"),),
    ),
    "newton": Report(
        "Second-order and exact solvers",
        "`rho` is the radius over the smallest one whose minimum is within 1e-3 of the infimum.",
        "python benchmarks/newton.py --commit",
        (
            Shown("Logistic regression on Adult to a certified 1e-8", "logistic"),
            Shown("Least squares on the stand-in for the year data, to 1e-12", "squares"),
            Shown("Paths of 50 radii, a certified 1e-6 each, over the hardest solution from scratch", "paths"),
        ),
    ),
    "passes": Report(
        "One pass over the data",
        "A tangent uses every entry of the table twice, but can read it from memory once. One read is the "
        "fastest of three simple loops over the same array.",
        "python benchmarks/passes.py --commit",
        (Shown("Time of a tangent over that of one read of the table, unless stated otherwise", "ratios"),),
    ),
    "small": Report(
        "Small problems",
        "Problems so small that overhead dominates. Fits are compared with scikit-learn's estimators with the same "
        "solution.",
        "python benchmarks/small.py --commit",
        (
            Shown(
                "What small problems cost",
                "figures",
                {"what": "name", "figure": "value/figure", "target": "value/target", "behind it": "value/behind"},
            ),
        ),
    ),
    "cluster": Report(
        "A cluster of Dask: a cost model and its check",
        "seconds = rounds x (latency + bytes / bandwidth + rows / (workers x rate)); the constants are in seconds, "
        "bytes a second, and rows of 90 float32 columns a second and worker. The workers share one machine, so that "
        "the bandwidth is that of serialisation and its memory; a network of 10 Gbit/s has 1.25e9.",
        "python benchmarks/cluster.py --commit",
        (
            Shown("Constants, measured on two workers", "constants"),
            Shown("A run, measured and by the model", "check"),
            Shown("Larger runs, by the model alone", "asked"),
        ),
    ),
    "before_after": Report(
        "Two versions of the package",
        "Figures of the benchmarks above in this version over those in an earlier one; below one is faster.",
        "python benchmarks/before_after.py ../before --commit",
        (Shown("Geometric means of the ratios", "means"), Shown("Medians of interleaved runs", "lines")),
    ),
}
