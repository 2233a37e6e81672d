"""The benchmarks that are quick enough to run together, then one figure of them.

    python benchmarks/all.py [--quick] [--only NAME ...] [--commit]

Each section prints its tables. Without `--quick` all take about 35 minutes on an idle machine, with it less than
20. `--commit` writes the JSON file and the table of each into `benchmarks/results`, with the options that were used.
Peers that are not installed are shown as missing. `sparse.py`, `defaults.py`, `dask_rounds.py`,
`completion.py` and `school.py` take longer or need more, and are run by themselves.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

from record import destinations

HERE = Path(__file__).parent
#: The options of each section, in full and in haste.
SECTIONS: dict[str, tuple[list[str], list[str]]] = {
    "passes": (["--out-of-core"], ["--repeat", "5"]),
    "small": ([], []),
    "projections": ([], []),
    "estimators": ([], []),
    "search": ([], ["--repeat", "2"]),
    "scaling": ([], ["--quick"]),
    "newton": ([], ["--quick"]),
    "first_order": ([], ["--quick"]),
    "peers": ([], ["--quick"]),
    "auto": (["--every", "7", "--limit", "5"], ["--every", "25", "--limit", "3"]),
}


def newest(folder: Path, name: str) -> dict:
    """What a section saved last; empty if it saved nothing."""
    files = sorted(folder.glob(f"{name}-*.json"), key=lambda path: path.stat().st_mtime)
    return json.loads(files[-1].read_text(encoding="utf-8")) if files else {}


def figure(found: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    shown, axes = plt.subplots(2, 2, figsize=(13, 9), constrained_layout=True)
    panels = (
        (ratios, "passes", "ratios"),
        (times, "peers", "rows"),
        (growth, "scaling", "series"),
        (plans, "auto", "problems"),
    )
    for ax, (drawn, name, part) in zip(axes.flat, panels, strict=True):
        rows = found.get(name, {}).get(part, [])
        if rows:
            drawn(ax, rows)
        else:  # a logarithmic axis without a number cannot be drawn
            ax.text(0.5, 0.5, f"{name}.py has not been run", ha="center", va="center", transform=ax.transAxes)
            ax.set_axis_off()
    shown.savefig(path, dpi=130)


def ratios(ax, found):
    """Each figure over its target, so that all share one axis; the figure itself stands beside its bar."""
    shares = [row["ratio"] / row["target"] for row in found]
    colours = ["#4477aa" if share <= 1.0 else "#cc6677" for share in shares]
    bars = ax.barh([row["pass"] for row in found], shares, color=colours)
    ax.bar_label(bars, [f"{row['ratio']:.3g}" for row in found], fontsize=7, padding=3)
    ax.axvline(1.0, color="#bbbbbb")
    ax.margins(x=0.12, y=0.01)
    ax.invert_yaxis()
    ax.tick_params(axis="y", labelsize=7)
    ax.set(title="passes and start-up over their targets", xlabel="figure / target (the figure beside the bar)")


def times(ax, found):
    names = list(dict.fromkeys(row["problem"] for row in found))
    for k, name in enumerate(names):
        reached = {row["method"]: row["seconds"]["1e-6"] for row in found if row["problem"] == name}
        reached = {method: seconds for method, seconds in reached.items() if isinstance(seconds, float)}
        for method, seconds in reached.items():
            mark, colour = ("o", "#4477aa") if method.startswith("projfree") else ("x", "#cc6677")
            ax.plot(seconds / min(reached.values()), k, mark, color=colour)
    ax.set(xscale="log", title="time to 1e-6 over the best", xlabel="ratio (dots: ours, crosses: peers)")
    ax.set_yticks(range(len(names)), [name.split(" x ")[0] for name in names], fontsize=7)


def growth(ax, found):
    for loss, colour in (("squared", "#4477aa"), ("logistic", "#cc6677")):
        for along, line in (("rows", "-"), ("columns", "--")):
            part = [row for row in found if row["loss"] == loss and row["along"] == along]
            sizes, seconds = [row["size"] for row in part], [row["seconds"] for row in part]
            ax.plot(sizes, seconds, line, color=colour, label=f"{loss}, {along}")
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
    options.add_argument("--only", nargs="*", default=list(SECTIONS), choices=SECTIONS)
    destinations(options)
    chosen = options.parse_args()
    for name in chosen.only:
        extra = [*SECTIONS[name][chosen.quick], *(["--commit"] if chosen.commit else [])]
        begun = time.perf_counter()
        subprocess.run([sys.executable, str(HERE / f"{name}.py"), "--out", str(chosen.out), *extra], check=True)
        print(f"{name}: {time.perf_counter() - begun:.0f} s", flush=True)
    path = chosen.out / "bench.png"
    figure({name: newest(chosen.out, name) for name in SECTIONS}, path)
    print(f"{path} shows the newest results in {chosen.out}")


if __name__ == "__main__":
    main()
