"""The page: one HTML file that needs nothing else, with plotly.js inside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from itertools import pairwise
from string import Template

from reproduction.base import Experiment, Origin, Panel, Verdict
from reproduction.report import preface
from reproduction.report.findings import SYMBOLS, Judged, counts, of_origin
from reproduction.report.interactive import figure
from reproduction.report.static import file_stem
from reproduction.report.style import DARK, LIGHT

CLASSES = {
    Verdict.HOLDS: "holds",
    Verdict.CHOICE: "choice",
    Verdict.ATTAINABLE: "attainable",
    Verdict.FAILS: "fails",
    Verdict.UNATTAINED: "fails",
    Verdict.OPEN: "open",
    Verdict.UNDEFINED: "undefined",
}
MACHINE = (
    "commit",
    "processor",
    "cores",
    "memory",
    "system",
    "python",
    "blas",
    "projfree",
    "numpy",
    "scipy",
    "numba",
    "cvxpy",
    "clarabel",
)


def page(
    experiments: Sequence[Experiment],
    found: Sequence[Judged],
    panels: dict[str, list[Panel]],
    facts: dict[str, str],
    command: str,
    *,
    figures: bool,
) -> str:
    """The whole page."""
    import plotly.offline

    data = {f"{name}-{panel.key}": figure(panel) for name, some in panels.items() for panel in some}
    return Template(_asset("page.html")).substitute(
        css=_asset("page.css"),
        js=_asset("page.js"),
        plotly=plotly.offline.get_plotlyjs(),
        data=json.dumps({"figures": data, "light": LIGHT, "dark": DARK}).replace("</", "<\\/"),
        subtitle=escape(f"{len(found)} claims, judged by rule from {facts['mode']} runs of {preface.days(facts)}"),
        opening=escape(" ".join(preface.opening(found, facts["mode"]))),
        headlines="\n".join(map(_headline, preface.headlines(found))),
        against="\n".join(map(_headline, preface.against(found))),
        tallies="\n".join(_tally(found, origin) for origin in Origin),
        standin=_stand_in(facts),
        rows="\n".join(_row(k, one) for k, one in enumerate(found)),
        toc="\n".join(f'<li><a href="#{e.name}">{escape(e.title)}</a></li>' for e in experiments),
        sections="\n".join(_section(e, found, panels[e.name], command, figures) for e in experiments),
        command=escape(command),
        circumstances=escape(preface.circumstances(facts)),
        machine="\n".join(f"<dt>{escape(k)}</dt><dd>{escape(facts[k])}</dd>" for k in MACHINE if facts.get(k)),
        paper=escape(preface.PAPER),
        citation=escape(preface.citation(facts)),
        abbreviations="\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in preface.ABBREVIATIONS.items()),
    )


def _asset(name: str) -> str:
    return (resources.files("reproduction.report") / "assets" / name).read_text(encoding="utf-8")


def _badge(verdict: Verdict, link: str = "") -> str:
    inside = f'<span aria-hidden="true">{SYMBOLS[verdict]}</span> {verdict.value}'
    if link:
        return f'<a class="badge {CLASSES[verdict]}" href="#{escape(link)}">{inside}</a>'
    return f'<span class="badge {CLASSES[verdict]}">{inside}</span>'


def _headline(one: Judged) -> str:
    return (
        f"<li>{_badge(one.finding.verdict, one.anchor)} {escape(one.claim.text)} "
        f'<span class="where">{escape(one.claim.where)}; {escape(preface.in_short(one))}</span></li>'
    )


def _tally(found: Sequence[Judged], origin: Origin) -> str:
    own = of_origin(found, origin)
    items = "".join(
        f'<li class="{CLASSES[v]}"><b>{n}</b> <span>{SYMBOLS[v]} {v.value}</span></li>'
        for v, n in counts(own).items()
        if n
    )
    label = f"What {origin.value}"
    heading = f'<h3>{label} <span class="where">{len(own)}</span></h3>'
    return f'<div>{heading}<ul class="tally" aria-label="{label}">{items}</ul></div>'


def _stand_in(facts: dict[str, str]) -> str:
    if not facts.get("stand_in"):
        return ""
    names = escape(facts["stand_in"])
    return f'<p class="standin"><b>Stand-ins.</b> Generated data take the place of real ones here: {names}. ' \
        "Each figure made on them says so.</p>"  # fmt: skip


def _row(place: int, one: Judged) -> str:
    order = list(Verdict).index(one.finding.verdict)
    return (
        f'<tr data-order="{place}" data-verdict="{order}">'
        f'<td data-label="experiment"><a href="#{one.experiment.name}">{escape(one.experiment.title)}</a></td>'
        f'<td data-label="claim"><a class="plain" href="#{escape(one.anchor)}">{escape(one.claim.text)}</a>'
        f'<div class="where">{escape(one.claim.origin.value)}; {escape(one.claim.where)}</div></td>'
        f'<td data-label="paper" class="number">{escape(one.claim.paper)}</td>'
        f'<td data-label="ours">{escape(one.finding.ours)}</td>'
        f'<td data-label="verdict">{_badge(one.finding.verdict, one.anchor)}</td></tr>'
    )


def _section(
    experiment: Experiment, found: Sequence[Judged], panels: Sequence[Panel], command: str, files: bool
) -> str:
    own = [one for one in found if one.experiment is experiment]
    claims = "".join(_claim(one, panels) for one in own)
    return (
        f'<section id="{experiment.name}"><h2>{escape(experiment.title)}</h2>'
        f'<p class="question">{escape(experiment.question)} <span class="where">{escape(experiment.paper)}</span></p>'
        f'<div class="claims">{claims}</div>'
        f'<div class="figures">{"".join(_figure(experiment.name, panel, files) for panel in panels)}</div>'
        f"<details open><summary>How it was measured</summary><p>{escape(experiment.method)}</p>"
        f"<p>Repeat it, in the same folder: "
        f"<code>{escape(_command_for(experiment, command))}</code></p></details></section>"
    )


def _command_for(experiment: Experiment, command: str) -> str:
    """What measures one experiment anew and merges it into the folder."""
    return command.replace(" --", f" {experiment.name} --", 1)


def _claim(one: Judged, panels: Sequence[Panel]) -> str:
    finding, claim = one.finding, one.claim
    shown = [panel for start in claim.figure.split() for panel in panels if panel.key.startswith(start)]
    links = ", ".join(
        f'<a href="#figure-{escape(one.experiment.name)}-{escape(panel.key)}">{escape(title)}</a>'
        for panel, title in zip(shown, told_apart([panel.title for panel in shown]), strict=True)
    )
    figures = f"<dt>figure</dt><dd>{links}</dd>" if links else ""
    timed = "; measured with a clock, may differ from machine to machine" if claim.timed else ""
    numbers = (
        f"<details><summary>All numbers</summary><p>{escape(finding.numbers)}</p></details>" if finding.numbers else ""
    )
    return (
        f'<article class="claim" id="{escape(one.anchor)}"><header>{_badge(finding.verdict)}'
        f"<h3>{escape(claim.text)}</h3></header><dl>"
        f"<dt>paper</dt><dd>{escape(claim.paper)} <span class='where'>{escape(claim.where)}</span></dd>"
        f"<dt>whose</dt><dd>{escape(claim.origin.value)}</dd>"
        f"<dt>ours</dt><dd>{escape(finding.ours)}{numbers}</dd><dt>why</dt><dd>{escape(finding.reason)}</dd>{figures}"
        f"<dt>rule</dt><dd class='rule'>{escape(claim.rule)}{timed}</dd></dl></article>"
    )


def told_apart(titles: Sequence[str]) -> list[str]:
    """The first title, and of each other only what sets it apart from the one before, in whole phrases."""
    out = list(titles[:1])
    for before, title in pairwise(titles):
        first, own = (re.split(r"(?<=[,:]) ", text) for text in (before, title))
        same = next((k for k, (a, b) in enumerate(zip(first, own, strict=False)) if a != b), min(len(first), len(own)))
        out.append(" ".join(own[same:]) or title)
    return out


def _figure(name: str, panel: Panel, files: bool) -> str:
    key = escape(f"{name}-{panel.key}")
    note = f'<span class="note">{escape(panel.note)}</span>' if panel.note else ""
    path = f"figures/{file_stem(name, panel)}"
    links = f'<a href="{path}.svg">SVG</a> <a href="{path}.png">PNG</a>' if files else ""
    return (
        f'<figure id="figure-{key}"><div class="plot" id="plot-{key}" data-key="{key}" role="img" '
        f'aria-label="{escape(panel.alt or panel.title)}"></div>'
        f"<figcaption><b>{escape(panel.title)}</b> {note}"
        f"<details><summary>In words</summary><p>{escape(panel.alt or panel.title)}</p><p>{links}</p></details>"
        "</figcaption></figure>"
    )
