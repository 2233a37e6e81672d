"""The report: a page in the numbering of the paper, a page of variants, a Markdown summary, and the numbers."""

from __future__ import annotations

import csv
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2
import markupsafe

from reproduction.base import PRINTED, STATED, Claim, Experiment, Figure, Finding, Verdict
from reproduction.runner import Store

#: CSS class of each verdict.
TONES = {
    Verdict.REPRODUCED: "good",
    Verdict.EXCEEDED: "good",
    Verdict.HOLDS: "good",
    Verdict.CHOICE: "part",
    Verdict.SOME: "part",
    Verdict.NOT_REPRODUCED: "bad",
    Verdict.FAILS: "bad",
    Verdict.UNDEFINED: "none",
    Verdict.OPEN: "none",
    Verdict.FULL: "none",
}
MARKS = {"good": "✓", "part": "◐", "bad": "✗", "none": "○"}
#: The figures of the paper; each must be on the page.
FIGURES = range(1, 11)


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its finding."""

    experiment: Experiment
    claim: Claim
    finding: Finding

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        return self.finding.verdict

    @property
    def tone(self) -> str:
        """The CSS class of the verdict."""
        return TONES[self.verdict]

    @property
    def key(self) -> tuple[str, str]:
        """The names of the experiment and of the claim."""
        return self.experiment.name, self.claim.key

    @property
    def numbers(self) -> list[int]:
        """The figures of the paper that show the claim."""
        return [int(n) for n in re.findall(r"\d+", self.claim.where)] if self.claim.where.startswith("Fig") else []


def paper_text() -> dict[str, Any]:
    """Load the text about the paper: tables, theorems, errata and choices."""
    return tomllib.loads((Path(__file__).parent / "paper.toml").read_text("utf-8"))


def rows_for(experiment: Experiment, table: Any) -> Any:
    """Return the rows of an experiment and of the experiments that it reads."""
    return table[table["experiment"].isin([experiment.name, *experiment.reads])]


def judge(experiments: Mapping[str, Experiment], table: Any, quick: bool) -> list[JudgedClaim]:
    """Apply the decision rules to all claims; in a quick run, claims that need the full data are marked."""
    out = []
    for experiment in experiments.values():
        rows = rows_for(experiment, table)
        for claim in experiment.claims:
            finding = claim.judge(rows)
            if quick and claim.full and finding.verdict is not Verdict.UNDEFINED:
                finding = replace(finding, verdict=Verdict.FULL)
            out.append(JudgedClaim(experiment, claim, finding))
    return out


def typeset(text: str) -> str:
    """Replace hyphens between and before numbers by dashes and minus signs."""
    text = re.sub(r"(?<=[\d%])-(?=\d)", "–", text)
    text = re.sub(r"(?<![\w-])-(?=[\d.∞])|(?<=\^)-", "−", text)
    return text.replace(" - ", " − ")


def rich(text: str) -> markupsafe.Markup:
    """Convert text to HTML with subscripts and superscripts."""
    escaped = str(markupsafe.escape(typeset(text)))
    powers = re.sub(r"\^(−?[\d./]+)", r"<sup>\1</sup>", escaped)
    return markupsafe.Markup(re.sub(r"(?<=\w)_(\w+|\*)|(?<=‖)_([z*s])", r"<sub>\1\2</sub>", powers))


def headline(judged: Sequence[JudgedClaim]) -> dict[str, Any]:
    """Count the verdicts of printed measurements and of statements."""
    counted = {}
    for name, printed, order in (("printed", True, PRINTED), ("stated", False, STATED)):
        verdicts = Counter(j.verdict for j in judged if j.claim.printed is printed)
        kinds = [*order, *(v for v in (Verdict.OPEN, Verdict.FULL) if v not in order)]
        counted[name] = {"total": sum(verdicts.values()), "counts": [(v, verdicts[v]) for v in kinds if verdicts[v]]}
    return counted


def headline_sentence(judged: Sequence[JudgedClaim]) -> str:
    """Return the counts of printed measurements as a sentence."""
    counts = headline(judged)["printed"]
    each = ", ".join(f"{n} {verdict.plural}" for verdict, n in counts["counts"])
    return f"Of the {counts['total']} measurements that the paper prints: {each}."


def draw_figures(experiments: Mapping[str, Experiment], table: Any, folder: Path) -> list[tuple[Experiment, Figure]]:
    """Draw the figures as SVG files without a date, so that equal numbers give equal files."""
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    measured = set(table["experiment"])
    for experiment in (e for e in experiments.values() if e.name in measured):
        for figure in experiment.figures:
            with matplotlib.rc_context({"svg.hashsalt": "projfree", "font.size": 8, "svg.fonttype": "none"}):
                image = figure.draw(rows_for(experiment, table))
                if image is not None:
                    image.savefig(folder / f"{figure.key}.svg", metadata={"Date": None})
                    drawn.append((experiment, figure))
    return sorted(drawn, key=lambda pair: (pair[1].number == 0, pair[1].number))


def context(experiments: Mapping[str, Experiment], table: Any, entries: Sequence[Any], quick: bool) -> dict[str, Any]:
    """Return the variables of the templates."""
    judged = sorted(judge(experiments, table, quick), key=lambda j: (j.numbers or [len(FIGURES) + 1], j.claim.where))
    about = {name: sorted({str(entry[name]) for entry in entries}) for name in ("date", "machine", "versions")}
    loads = [entry["load"] for entry in entries if entry["timed"] and entry["load"] is not None]
    return {
        "judged": judged,
        "by_key": {".".join(j.key): j for j in judged},
        "headline": headline(judged),
        "sentence": headline_sentence(judged),
        "figures": [(n, [j for j in judged if j.claim.printed and n in j.numbers]) for n in FIGURES],
        "elsewhere": [j for j in judged if j.claim.printed and not j.numbers],
        "stated": [j for j in judged if not j.claim.printed],
        "experiments": list(experiments.values()),
        "remarks": [line for e in experiments.values() for line in e.remarks(rows_for(e, table))],
        "text": paper_text(),
        "quick": quick,
        "about": about,
        "minutes": sum(entry["seconds"] for entry in entries) / 60,
        "loads": f"{min(loads)} to {max(loads)}" if loads else "not known",
        "tones": TONES,
        "marks": MARKS,
    }


def write_numbers(judged: Sequence[JudgedClaim], path: Path) -> None:
    """Write the numbers behind the claims to a CSV file, one line per setting."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ("experiment", "claim", "place", "paper", "verdict", "setting", "value", "low", "high", "state", "note")
        )
        for j in judged:
            head = (*j.key, j.claim.where, j.claim.paper, j.verdict.value)
            for s in j.finding.settings:
                values = [f"{x:.6g}" if x == x else "" for x in (s.value, s.low, s.high)]
                writer.writerow((*head, s.name, *values, s.state, s.note))


def build_report(experiments: Mapping[str, Experiment], store: Store, folder: Path) -> dict[str, Any]:
    """Judge the stored measurements, write the report into a folder, and return the template variables."""
    table, entries = store.table(), store.entries()
    shown = context(experiments, table, entries, store.mode == "quick")
    shown["drawn"] = draw_figures(experiments, table, folder / "figures")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(typeset=typeset, rich=rich)
    for name in ("report.html", "details.html", "summary.md"):
        text = environment.get_template(name).render(shown)
        (folder / name).write_text(re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n", "utf-8")
    write_numbers(shown["judged"], folder / "numbers.csv")
    return shown
