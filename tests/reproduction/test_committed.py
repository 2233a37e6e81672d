"""The run that the repository holds: its verdicts follow from its measurements by the rules of today."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from reproduction.report import FIGURES, headline_sentence, judge
from reproduction.runner import STORE, Store, discover

TOP = Path(__file__).parents[2]
FOLDER = TOP / "docs" / "reproduced"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the archive holds no documentation of the run")


@pytest.fixture(scope="module")
def judged():
    return judge(discover(), Store(FOLDER, "full").table(), quick=False)


def test_every_task_of_a_full_run_is_stored() -> None:
    store = Store(FOLDER, "full")
    assert {entry["mode"] for entry in store.entries()} == {"full"}
    wanted = {store.path(e.name, task) for e in discover().values() for task in e.tasks("full")}
    assert wanted == set((FOLDER / STORE).glob("*.json"))


def test_the_verdicts_and_settings_are_those_of_the_rules(judged) -> None:
    with (FOLDER / "numbers.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    written = Counter((x["experiment"], x["claim"], x["verdict"], x["setting"], x["state"]) for x in lines)
    assert written == Counter((*j.key, j.verdict.value, s.name, s.state) for j in judged for s in j.finding.settings)


def test_the_summary_is_short_and_says_the_headline(judged) -> None:
    text = (FOLDER / "summary.md").read_text("utf-8")
    assert len(text.splitlines()) <= 250
    assert headline_sentence(judged) in text
    assert headline_sentence(judged) in " ".join((TOP / "README.md").read_text("utf-8").split())


def test_figures_are_there_and_small() -> None:
    text = (FOLDER / "summary.md").read_text("utf-8")
    linked = set(re.findall(r"\((figures/[^)]*)\)", text))
    assert {f"figures/figure-{n}.svg" for n in FIGURES} <= linked
    assert linked == {f"figures/{path.name}" for path in (FOLDER / "figures").iterdir()}
    assert sum(path.stat().st_size for path in (FOLDER / "figures").iterdir()) < 3_000_000
