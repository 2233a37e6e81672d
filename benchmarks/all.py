"""Every benchmark, then one JSON file and one figure: ``python benchmarks/all.py [--quick]``.

Runs the sections one after the other, each printing its table, and gathers what they saved in
``benchmarks/scratch/bench.json`` and ``bench.png``: about 35 minutes on an idle machine. Of the plan's problems it
takes one in seven; ``auto.py`` alone takes all.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SECTIONS = ("passes", "small", "peers", "scaling", "newton", "auto")


def newest(folder: Path, name: str) -> dict:
    """What a section saved last; empty if it saved nothing."""
    files = sorted(folder.glob(f"{name}*.json"), key=lambda path: path.stat().st_mtime)
    return json.loads(files[-1].read_text(encoding="utf-8")) if files else {}


def figure(found: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown, axes = plt.subplots(2, 2, figsize=(13, 9), constrained_layout=True)
    passes = found.get("passes", {})
    ratios(axes[0, 0], passes.get("ratios", {}), passes.get("targets", {}))
    times(axes[0, 1], found.get("peers", {}).get("seconds", {}))
    growth(axes[1, 0], found.get("scaling", {}).get("series", []))
    plans(axes[1, 1], found.get("auto", {}).get("problems", []))
    shown.savefig(path, dpi=130)


def ratios(ax, found, goals):
    """Each figure over its target, so that all share one axis; the figure itself stands beside its bar."""
    names = [name for name in found if goals.get(name)]
    shares = [found[name] / goals[name] for name in names]
    bars = ax.barh(names, shares, color=["#4477aa" if share <= 1.0 else "#cc6677" for share in shares])
    ax.bar_label(bars, [f"{found[name]:.3g}" for name in names], fontsize=7, padding=3)
    ax.axvline(1.0, color="#bbbbbb")
    ax.margins(x=0.12, y=0.01)
    ax.invert_yaxis()
    ax.tick_params(axis="y", labelsize=7)
    ax.set(title="passes and start-up over their targets", xlabel="figure / target (the figure beside the bar)")


def times(ax, found):
    for k, (_, by) in enumerate(found.items()):
        best = min((levels["1e-06"] for levels in by.values() if levels["1e-06"]), default=math.nan)
        for name, levels in by.items():
            value = levels["1e-06"]
            if value and math.isfinite(value):
                ours = name.startswith("projfree")
                ax.plot(value / best, k, "o" if ours else "x", color="#4477aa" if ours else "#cc6677")
    ax.set(xscale="log", title="time to 1e-6 over the best", xlabel="ratio (dots: ours, crosses: peers)")
    ax.set_yticks(range(len(found)), [name.split(" x ")[0] for name in found], fontsize=7)


def growth(ax, found):
    for loss, colour in (("squared", "#4477aa"), ("logistic", "#cc6677")):
        for along, line in (("rows", "-"), ("columns", "--")):
            part = [row for row in found if row["loss"] == loss and row["along"] == along]
            ax.plot(
                [row["size"] for row in part],
                [row["seconds"] for row in part],
                line,
                color=colour,
                label=f"{loss}, {along}",
            )
    ax.set(xscale="log", yscale="log", title="seconds to a certified 1e-6", xlabel="rows or columns", ylabel="seconds")
    ax.legend(fontsize=8)


def plans(ax, found):
    values = sorted(row["ratio"] for row in found if row["judged"] and math.isfinite(row["ratio"] or math.inf))
    ax.step(values, [(k + 1) / len(values) for k in range(len(values))], where="post", color="#4477aa")
    ax.axvline(1.5, color="#bbbbbb")
    ax.set(title="the plan over the best solver", xlabel="ratio", ylabel="share of problems")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", nargs="*", default=SECTIONS, choices=SECTIONS)
    options.add_argument("--out", type=Path, default=HERE / "results")
    chosen = options.parse_args()
    slow = {"passes": ["--out-of-core"], "auto": ["--every", "7", "--limit", "5"]}
    fast = {"passes": ["--repeat", "5"], "auto": ["--repeat", "1", "--limit", "3", "--only", "logistic, l_1.5"]}
    for name in chosen.only:
        extra = fast.get(name, ["--quick"]) if chosen.quick else slow.get(name, [])
        subprocess.run([sys.executable, str(HERE / f"{name}.py"), "--out", str(chosen.out), *extra], check=True)
    found = {name: newest(chosen.out, name) for name in SECTIONS}
    (chosen.out / "bench.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    figure(found, chosen.out / "bench.png")
    print(f"{chosen.out / 'bench.json'} and {chosen.out / 'bench.png'} hold all of it")


if __name__ == "__main__":
    main()
