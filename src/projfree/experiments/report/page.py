"""The page: one HTML file that needs nothing else, with plotly.js inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template

from projfree.experiments.base import Experiment, Panel, Verdict
from projfree.experiments.report.findings import SYMBOLS, Judged, counts
from projfree.experiments.report.interactive import figure
from projfree.experiments.report.style import DARK, LIGHT

CLASSES = {
    Verdict.HOLDS: "holds",
    Verdict.PARTLY: "partly",
    Verdict.FAILS: "fails",
    Verdict.UNDEFINED: "undefined",
    Verdict.UNMEASURED: "unmeasured",
}
MACHINE = (
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
        subtitle=escape(f"{len(found)} claims, judged by rule from {facts['mode']} runs of {facts['date'][:10]}"),
        tally=_tally(found),
        standin=_stand_in(facts),
        rows="\n".join(_row(k, one) for k, one in enumerate(found)),
        toc="\n".join(f'<li><a href="#{e.name}">{escape(e.title)}</a></li>' for e in experiments),
        sections="\n".join(_section(e, found, panels[e.name], command, figures) for e in experiments),
        command=escape(command),
        machine="\n".join(f"<dt>{escape(k)}</dt><dd>{escape(facts[k])}</dd>" for k in MACHINE if facts.get(k)),
    )


def _asset(name: str) -> str:
    return (resources.files("projfree.experiments.report") / "assets" / name).read_text(encoding="utf-8")


def _badge(verdict: Verdict) -> str:
    symbol = f'<span aria-hidden="true">{SYMBOLS[verdict]}</span>'
    return f'<span class="badge {CLASSES[verdict]}">{symbol} {verdict.value}</span>'


def _tally(found: Sequence[Judged]) -> str:
    return "\n".join(
        f'<li class="{CLASSES[v]}"><b>{n}</b> <span>{SYMBOLS[v]} {v.value}</span></li>'
        for v, n in counts(found).items()
        if n
    )


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
        f'<td data-label="claim"><a class="plain" href="#{escape(one.anchor)}">{escape(one.claim.text)}</a></td>'
        f'<td data-label="paper" class="number">{escape(one.claim.paper)}</td>'
        f'<td data-label="ours">{escape(one.finding.ours)}</td>'
        f'<td data-label="verdict">{_badge(one.finding.verdict)}</td></tr>'
    )


def _section(
    experiment: Experiment, found: Sequence[Judged], panels: Sequence[Panel], command: str, files: bool
) -> str:
    own = [one for one in found if one.experiment is experiment]
    again = _command_for(experiment, command)
    return (
        f'<section id="{experiment.name}"><h2>{escape(experiment.title)}</h2>'
        f'<p class="question">{escape(experiment.question)} <span class="where">{escape(experiment.paper)}</span></p>'
        f'<div class="claims">{"".join(map(_claim, own))}</div>'
        f'<div class="figures">{"".join(_figure(experiment.name, panel, files) for panel in panels)}</div>'
        f"<details open><summary>How it was measured</summary><p>{escape(experiment.method)}</p>"
        f"<p>Repeat it: <code>{escape(again)}</code></p></details></section>"
    )


def _command_for(experiment: Experiment, command: str) -> str:
    words = command.split()
    flags = [
        word for k, word in enumerate(words[2:], start=2) if word.startswith("-") or words[k - 1].startswith("--out")
    ]
    return " ".join(["projfree reproduce", experiment.name, *flags])


def _claim(one: Judged) -> str:
    finding = one.finding
    return (
        f'<article class="claim" id="{escape(one.anchor)}"><header>{_badge(finding.verdict)}'
        f"<h3>{escape(one.claim.text)}</h3></header><dl>"
        f"<dt>paper</dt><dd>{escape(one.claim.paper)} <span class='where'>{escape(one.claim.where)}</span></dd>"
        f"<dt>ours</dt><dd>{escape(finding.ours)}</dd><dt>why</dt><dd>{escape(finding.reason)}</dd>"
        f"<dt>rule</dt><dd class='rule'>{escape(one.claim.rule)}</dd></dl></article>"
    )


def _figure(name: str, panel: Panel, files: bool) -> str:
    key = f"{name}-{panel.key}"
    note = f'<span class="note">{escape(panel.note)}</span>' if panel.note else ""
    links = f'<a href="figures/{escape(key)}.svg">SVG</a> <a href="figures/{escape(key)}.png">PNG</a>' if files else ""
    return (
        f'<figure><div class="plot" id="plot-{escape(key)}" data-key="{escape(key)}" role="img" '
        f'aria-label="{escape(panel.alt or panel.title)}"></div>'
        f"<figcaption><b>{escape(panel.title)}</b> {note}"
        f"<details><summary>In words</summary><p>{escape(panel.alt or panel.title)}</p><p>{links}</p></details>"
        "</figcaption></figure>"
    )
