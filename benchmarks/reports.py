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
        "Ours stop when the certificate proves the gap. The peers have no such certificate: each is timed at "
        "the loosest of its own tolerances whose answer is good enough, and is given the penalty that belongs"
        " to the radius. A ratio below one means that ours is faster; there is none where ours proved nothing in "
        "time. The column before the last has the ratio to liblinear at its tolerances 1e-3 and 1e-6, whatever gap it "
        "has there. Constants were chosen on the problems with a star. Rows were measured at different times: the JSON "
        "file has the date, the commit and the load of each, and the peers that failed, and why.",
        "python benchmarks/sparse.py --commit",
        (
            Shown("CPU seconds to a relative error of 1e-7", "problems", _sparse("1e-07")),
            Shown("CPU seconds to a relative error of 1e-4", "problems", _sparse("0.0001")),
            Shown("Seconds of the clock of single runs", "limits", without=("commit", "load", "date")),
        ),
    ),
    "search": Report(
        "Searches with default settings, against scikit-learn",
        "Each side chooses its penalty with five folds from its default grid; `LogisticRegressionCV` tries 20 values, "
        "and `RidgeCV` leaves one row out, in closed form, from 13 penalties. Scores are those of held-out rows. "
        "`as fast and as good` is at most 2 times the time of `LassoCV` and `MultiTaskLassoCV`, 3 times that of "
        "`LogisticRegressionCV` and 5 times that of `RidgeCV`, with a score that is lower by 0.002 at most.",
        "python benchmarks/search.py --commit",
        (Shown("Searches", "search"),),
    ),
    "completion": Report(
        "Matrix completion",
        "A tenth of the ratings is held out, at random, for each seed. Ours chooses inside the others; the settings of "
        "peers were chosen among 30 (cmfrec) and 3 (Surprise) on the training part of the first seed, on which the "
        "other seeds test, which favours them. Rows were measured at different times: each has the date, and where "
        "it was kept the commit and the load.",
        "python benchmarks/completion.py rmse 1m --seeds 0 1 2 3 4 --method NAME --commit",
        (
            Shown("Mean RMSE over the seeds of the split", "results", without=("by seed", "median s", "threads")),
            Shown(
                "Lists of ten items for users who like something held out, at least the mean rating "
                "(`benchmarks/completion.py ranking 1m --commit`)",
                "ranking",
            ),
            Shown("Mean RMSE of users or films of whom no rating was fitted (`completion.py cold 1m`)", "cold"),
            Shown(
                "Whole fits with all defaults, choice and certificate included, on generated ratings of 140,000 users "
                "and 27,000 films (`benchmarks/completion.py fit --ratings N --commit`)",
                "fits",
            ),
            Shown(
                "Recommendations for all users beside the bare products of their factors with those of all items "
                "(`benchmarks/completion.py lists --commit`)",
                "lists",
            ),
            Shown(
                "Fits of ratings alone until the relative gap is proved, at the radius that a fit without a tolerance "
                "chooses (`benchmarks/completion.py proved 1m --commit`)",
                "proved",
            ),
        ),
    ),
    "defaults": Report(
        "Default models beside those of scikit-learn",
        "Both minimise the same function. Times are the smallest of interleaved fits on one thread. The difference is "
        "the largest one of the linear predictions over the largest of them; `liblinear` is fitted without an "
        "intercept, and the texts are generated, with Zipf's frequencies.",
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
        "A tangent needs every number of the table twice in arithmetic, and once from memory. One read is the"
        " fastest of three plain loops over the same array.",
        "python benchmarks/passes.py --commit",
        (Shown("Times of a tangent over those of one read of the table, unless said otherwise", "ratios"),),
    ),
    "small": Report(
        "Small problems",
        "Where overhead is all there is. Fits are compared with scikit-learn's estimators that have the same "
        "minimiser.",
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
