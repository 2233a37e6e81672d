"""Sparse and wide problems: our time to a certified gap over that of the best peer to the same true suboptimality.

    python benchmarks/sparse.py [--only TEXT] [--quick] [--prepare] [--commit]

Ours start from data made anew, which is not timed, and stop when their certificate says so. Peers have none: each is
tried at a series of its own tolerances and timed at the loosest whose answer is good enough by `Problem.error`. They
get the penalty of the radius for free, arrays in the layout they like, and a first run that is not timed. Liblinear is
timed at its tolerances 1e-3 and 1e-6 too, whatever gap its answers have there. Runs are interleaved, with one thread;
figures are medians of CPU times. Constants of our solvers may be tuned on the problems marked by a star; the others
judge them. Reference optima are kept in the scratch folder; ``--prepare`` only finds those that are missing.

Needs the dependency group `peers`; where a peer asks for NumPy 1, an environment of its own.
"""

from __future__ import annotations

import argparse
import gc
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import console, with_one_thread
from record import commit, committed, destinations, machine, save, versions
from sparse_problems import GROUP, Case, Problem, cases, table

import projfree
from projfree.numerics.compilation import compile_seconds, watch

LEVELS = (1e-4, 1e-7)
#: Ratios to the best peer that are aimed at, and to liblinear at its tolerances for both levels.
TARGETS = {"path": (2.0, 2.0), "few": (2.0, 2.0), "softmax": (3.0, 3.0)}
TARGET, LIBLINEAR = (1.5, 1.5), {1e-4: (1e-3, 5.0), 1e-7: (1e-6, 2.5)}
TIGHTER = tuple(10.0**-k for k in range(1, 15))
Answers = list[np.ndarray]
Solve = Callable[[Problem, float], Answers]


# ------------------------------------------------------------ the peers: an answer for each goal at a setting


def sklearn_lasso(p: Problem, tol: float) -> Answers:
    from sklearn.linear_model import lasso_path

    alphas = np.array([goal.multiplier / 2 for goal in p.goals])
    settings = {"precompute": False, "check_input": False, "max_iter": 100_000}
    return list(lasso_path(p.csc, p.y, alphas=alphas, tol=tol, **settings)[1].T)


def celer(p: Problem, tol: float) -> Answers:
    from celer import celer_path

    kind, unit = ("logreg", len(p.y)) if p.case.kind == "logistic" else ("lasso", 0.5)
    settings = {"use_PN": True} if kind == "logreg" else {"p0": 100, "prune": 1}
    alphas = np.array([unit * goal.multiplier for goal in p.goals])
    return list(celer_path(p.csc, p.y, kind, alphas=alphas, tol=tol, max_iter=100, **settings)[1].T)


def skglm_logistic(p: Problem, tol: float) -> Answers:
    from skglm.datafits import Logistic
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton

    solver, penalty = ProxNewton(tol=tol, fit_intercept=False, max_iter=200), L1(p.goals[0].multiplier)
    start, image = np.zeros(p.csc.shape[1]), np.zeros(len(p.y))
    return [solver.solve(p.csc, p.y, Logistic(), penalty, start, image, run_checks=False)[0]]


def sklearn_logistic(p: Problem, **settings: Any) -> Answers:
    from sklearn.linear_model import LogisticRegression

    prices = [1.0 / (len(p.y) * goal.multiplier) for goal in p.goals]
    settings |= {"fit_intercept": False, "l1_ratio": 1.0}
    answers = [LogisticRegression(C=C, **settings).fit(p.X, p.y).coef_.T for C in prices]
    return [w if p.case.kind == "softmax" else w[:, 0] for w in answers]


def liblinear(p: Problem, tol: float) -> Answers:
    return sklearn_logistic(p, solver="liblinear", tol=tol, max_iter=10_000)


def saga(p: Problem, tol: float) -> Answers:
    """As many epochs as the inverse of the root of ``tol``: its own tolerance says little."""
    return sklearn_logistic(p, solver="saga", tol=0.0, max_iter=round(tol**-0.5))


def adelie(p: Problem, tol: float) -> Answers:
    import adelie as ad

    groups, path = np.arange(0, p.csc.shape[1], GROUP), np.array([0.5 * goal.multiplier for goal in p.goals])
    settings = {"groups": groups, "penalty": np.ones(len(groups)), "lmda_path": path, "early_exit": False, "tol": tol}
    quiet = {"progress_bar": False, "n_threads": 1, "intercept": False}
    state = ad.grpnet(ad.matrix.dense(p.csc), ad.glm.gaussian(p.y), **settings, **quiet)
    return [np.asarray(row.todense()).ravel() for row in state.betas]


def sklearn_tasks(p: Problem, tol: float) -> Answers:
    from sklearn.linear_model import MultiTaskLasso

    alpha = p.goals[0].multiplier / 2
    return [MultiTaskLasso(alpha=alpha, tol=tol, fit_intercept=False, max_iter=100_000).fit(p.csc, p.y).coef_.T]


def peers(case: Case) -> dict[str, Solve]:
    """The peers that solve a problem."""
    logistic = {"liblinear": liblinear, "celer": celer}
    return {
        "lasso": {"scikit-learn": sklearn_lasso, "celer": celer},
        "logistic": logistic if case.radii > 1 else logistic | {"skglm": skglm_logistic},
        "softmax": {"saga": saga},
        "group": {"adelie": adelie},
        "tasks": {"scikit-learn": sklearn_tasks},
    }[case.kind]


# ------------------------------------------------------------ measuring


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds and the answer of a call; once more where something was compiled on the way."""
    gc.collect()
    before, begun = compile_seconds(), time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # a peer at a loose tolerance often warns
        answer = call()
    spent = time.process_time() - begun
    return timed(call) if compile_seconds() > before else (spent, answer)


def ours(p: Problem, level: float, patience: float) -> tuple[float, Any]:
    """CPU seconds of a run from new data, and the worst of its results, whose bounds are checked."""
    f, radii = p.objective(), [goal.radius for goal in p.goals]
    settings = {"tol": level, "max_iter": 10**6, "time_limit": patience, "record": 0}
    if len(radii) == 1:
        spent, result = timed(lambda: [projfree.minimize(f, p.ball(radii[0]), **settings)])
    else:
        spent, result = timed(lambda: list(projfree.path(f, p.ball(1.0), radii, **settings).results))
    for goal, each in zip(p.goals, result, strict=True):
        if each.bound > goal.value * (1.0 + 1e-12):
            raise AssertionError(f"{p.case.name}: the bound {each.bound} is above the value {goal.value}.")
    return spent, max(result, key=lambda each: each.relative_gap)


def settings_of(p: Problem, solve: Solve, patience: float) -> dict[float, float]:
    """For each level the loosest setting at which a peer reaches it within the patience."""
    found: dict[float, float] = {}
    solve(p, TIGHTER[0])  # compiles, and loads what a first run has to load
    for setting in TIGHTER:
        spent, answers = timed(lambda: solve(p, setting))
        error = p.error(answers)
        found |= {level: setting for level in LEVELS if error <= level and level not in found}
        if len(found) == len(LEVELS) or spent > patience:
            break
    return found


def compare(p: Problem, repeat: int, patience: float) -> dict[str, Any]:
    """The row of a problem: ours and the peers, interleaved."""
    runs: dict[tuple[str, float], Callable[[], Any]] = {}
    missing = {}
    for name, solve in peers(p.case).items():
        try:
            chosen = settings_of(p, solve, patience)
        except Exception as error:  # a peer may give up in any way, which is shown
            missing[name] = repr(error)
            continue
        if solve is liblinear and p.case.radii == 1:
            runs |= {("as used", level): lambda s=solve, t=tol: s(p, t) for level, (tol, _) in LIBLINEAR.items()}
        runs |= {(name, level): lambda s=solve, t=tol: s(p, t) for level, tol in chosen.items()}
    ours(p, 0.1, patience)  # compiles
    times: dict[tuple[str, float], list[float]] = {}
    worst = {}
    for _ in range(repeat):
        for level in LEVELS:
            spent, worst[level] = ours(p, level, patience)
            times.setdefault(("ours", level), []).append(spent)
            for key, run in runs.items():
                if key[1] == level:
                    times.setdefault(key, []).append(timed(run)[0])
    cpu = {key: float(np.median(each)) for key, each in times.items()}
    row = {"problem": p.case.name, "n": len(p.y), "d": p.X.shape[1], "nonzeros": p.parts(p.goals[-1].w)}
    row |= {"reference gap": max(goal.gap for goal in p.goals), "missing": missing}
    return row | {str(level): _judged(p.case, level, cpu, worst[level]) for level in LEVELS}


def _judged(case: Case, level: float, cpu: dict[tuple[str, float], float], worst: Any) -> dict[str, Any]:
    """Times at a level, their ratios, and whether they meet the targets."""
    own, certified = cpu["ours", level], bool(worst.relative_gap <= level)
    times = {name: seconds for (name, at), seconds in cpu.items() if at == level and name not in ("ours", "as used")}
    best, used = min(times, key=lambda name: times[name], default=None), cpu.get(("as used", level))
    kind = "path" if case.radii > 1 else "few" if case.size < 100 and case.kind == "lasso" else case.kind
    target = TARGETS.get(kind, TARGET)[LEVELS.index(level)]
    found = {"ours": own, "certified": certified, "gap": float(worst.relative_gap), "solver": repr(worst.solver)}
    found |= {"best": best, "peer": None if best is None else times[best], "target": target}
    found["ratio"] = None if best is None or not certified else own / times[best]
    found["over liblinear"] = None if used is None or not certified else own / used
    good = [] if best is None else [found["ratio"] is not None and found["ratio"] <= target]
    good += [] if used is None else [certified and own / used <= LIBLINEAR[level][1]]
    return found | {"met": all(good) if good else None}


def limits(references: Path) -> list[tuple[str, float, Callable[[], Any]]]:
    """Single runs with limits on their seconds, and how they end."""

    def zero() -> Any:
        made = table("neighbours")
        f = projfree.Objective(projfree.Squared(), projfree.as_data(made.X, made.real))
        return projfree.minimize(f, projfree.LpBall(1, 1e3), tol=1e-4).status.name

    def many() -> Any:
        return ours(Problem(Case("lasso", "text A", 5_000), references), LEVELS[-1], 60.0)[1].status.name

    def estimator() -> Any:
        made = table("text B")
        model = projfree.ConstrainedClassifier(p=1, radius=100.0)
        return model.fit(made.X[:5_000], made.sign[:5_000]).result_.status.name

    return [
        ("lasso, minimum zero, 500 x 3,000", 5.0, zero),
        ("lasso, text A, 5,000 nonzeros", np.inf, many),
        ("ConstrainedClassifier(p=1, radius=100), 5,000 x 41,681", 1.0, estimator),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="", help="problems whose name contains this; several are separated by |")
    options.add_argument("--quick", action="store_true", help="one run in place of three, less patience")
    options.add_argument("--prepare", action="store_true", help="find reference optima, measure nothing")
    destinations(options)
    chosen = options.parse_args()
    with_one_thread()
    watch()
    repeat, patience = (1, 8.0) if chosen.quick else (3, 20.0)
    references = chosen.out / "optima"
    asked = [case for case in cases() if any(part in case.name for part in chosen.only.split("|"))]
    where = machine()
    mark = {key: where.pop(key) for key in ("commit", "load")} | {"date": where["date"]}
    rows: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    # What other runs measured stays, and every row says when.
    kept = committed("sparse") if chosen.commit else {}
    kept = {key: [row for row in kept.get(key, []) if "date" in row] for key in ("problems", "limits")}
    try:
        for case in asked:
            problem = Problem(case, references)
            if chosen.prepare:
                continue
            rows.append(compare(problem, repeat, patience) | mark)
            console().print(rows[-1])
        for name, limit, run in limits(references):
            if any(part in name for part in chosen.only.split("|")):
                run()  # compiles
                begun = time.perf_counter()
                end = run()
                spent = time.perf_counter() - begun
                ends.append({"problem": name, "seconds": spent, "limit": limit, "end": end} | mark)
                console().print(ends[-1])
    finally:  # what was measured before an interrupt or a wrong bound is kept
        packages = versions("scikit-learn", "celer", "skglm", "adelie")
        payload = {"machine": where, "versions": packages, "settings": {"repeat": repeat, "patience": patience}}
        for key, new in (("problems", rows), ("limits", ends)):
            measured = {row["problem"] for row in new}
            payload[key] = [row for row in kept[key] if row["problem"] not in measured] + new
        if not chosen.prepare:
            (commit("sparse", payload) if chosen.commit else save(chosen.out, "sparse", payload))


if __name__ == "__main__":
    main()
