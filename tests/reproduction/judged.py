"""Tables as rules read them, and the claims by their names."""

from __future__ import annotations

import pandas as pd

from reproduction import EXPERIMENTS
from reproduction.store import COLUMNS, TEXT
from reproduction.words import NOTHING

CLAIMS = {(e.name, c.key): c for e in EXPERIMENTS for c in e.claims}
RHO, ALPHA = "\N{GREEK SMALL LETTER RHO}", "\N{GREEK SMALL LETTER ALPHA}"
MINUS = "\N{MINUS SIGN}"


def table(rows):
    """A table as the store gives it: texts are never missing, numbers may be."""
    frame = pd.DataFrame([{**dict.fromkeys(COLUMNS), "stand_in": False, **row} for row in rows], columns=list(COLUMNS))
    for name in COLUMNS:
        frame[name] = frame[name].where(frame[name].notna(), "") if name in TEXT else frame[name]
    numbers = [name for name in COLUMNS if name not in (*TEXT, "stand_in")]
    frame[numbers] = frame[numbers].apply(pd.to_numeric)
    return frame


def verdict_of(experiment, key, rows):
    return CLAIMS[experiment, key].judge(table(rows)).verdict


def ended(rows, solver):
    """The rows with a run that ended before it converged."""
    return [{**row, "measure": f"{row['measure']} at least"} if row["solver"] == solver else row for row in rows]


def without_figure(report):
    """The claims that were measured and that no panel shows."""
    return [
        one.anchor for one in report.found
        if one.finding.ours != NOTHING and not [panel for panel in report.panels[one.experiment.name]
                                                if panel.key.startswith(tuple(one.claim.figure.split()))]
    ]  # fmt: skip
