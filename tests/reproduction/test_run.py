"""The store resumes, failures are told, and the report is whole, escaped and short."""

import csv
import json
import math
import re
from pathlib import Path

import pytest

from reproduction.__main__ import main
from reproduction.base import Claim, Experiment, Figure, Task
from reproduction.drawing import label_axes, log_scales, panels
from reproduction.report import build_report
from reproduction.rules import compare, select, slope_rule
from reproduction.runner import Store, discover, measure_tasks

CALLS: list[str] = []


def rows():
    CALLS.append("rows")
    for k, value in enumerate((-2.0, -2.1, math.nan)):
        yield {"measure": "slope", "value": value, "method": "PA", "start": k, "data": "drawn", "stand_in": True}


def broken():
    raise RuntimeError("it broke")
    yield {}


def draw(table):
    figure, (axis,) = panels()
    axis.plot([1, 10, 100], [3, 2, 1])
    log_scales(axis)
    label_axes(axis, "a < b", "t", "error")
    return figure


def finding(table):
    return compare([slope_rule(-2).at("<script>", select(table, measure="slope")["value"])], table)


TINY = Experiment(
    "tiny",
    "Tiny & small",
    "How <b>it</b> is done",
    lambda mode: [Task("b", rows, timed=True), Task("a/1", rows)],
    (Claim("one", "Figure 1", "w_t <i>falls</i>", "-2", "by the rule", finding, True, "figure-1", full=True),),
    (Figure("figure-1", 1, "PA <b>bold</b>", draw),),
)


def test_tasks_are_stored_at_once_and_never_measured_twice(tmp_path: Path) -> None:
    CALLS.clear()
    store, said = Store(tmp_path, "quick"), list[str]()
    assert measure_tasks([TINY], store, lambda _: True, said.append) == []
    assert [line.split(": ")[1] for line in said] == ["tiny, a/1", "tiny, b"]  # those with a clock last
    assert measure_tasks([TINY], store, lambda _: True, said.append) == []
    assert CALLS == ["rows", "rows"]
    store.path("tiny", Task("b", rows)).unlink()
    assert measure_tasks([TINY], store, lambda _: True, said.append) == []
    assert CALLS == ["rows"] * 3
    table = store.table()
    assert len(table) == 6
    assert set(table["task"]) == {"a/1", "b"}
    assert table["value"].isna().sum() == 2


def test_a_failure_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    tasks = [Task("broken", broken), Task("fine", rows)]
    experiment = Experiment("both", "", "", lambda mode: tasks, ())
    store, said = Store(tmp_path, "quick"), list[str]()
    assert measure_tasks([experiment], store, lambda _: True, said.append) == ["both, broken: RuntimeError: it broke"]
    assert store.path("both", tasks[1]).exists()
    assert not list(store.folder.glob("*broken*"))


def test_an_unknown_column_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path, "quick")
    store.save("x", Task("y", rows), [{"measure": "a", "value": 1.0, "colour": "red"}], {"seconds": 0, "load": None})
    with pytest.raises(ValueError, match="colour"):
        store.table()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    store = Store(folder, "full")
    assert measure_tasks([TINY], store, lambda _: True, lambda line: None) == []
    return folder, build_report({"tiny": TINY}, store, folder)


def test_the_report_is_escaped_and_links_what_it_shows(report) -> None:
    folder, shown = report
    page = (folder / "report.html").read_text("utf-8")
    assert "<script>" not in page + (folder / "details.html").read_text("utf-8")
    assert "&lt;script&gt;" in page
    assert "w<sub>t</sub> &lt;i&gt;falls" in page
    assert shown["sentence"] == "Of the 1 measurements that the paper prints: 1 reproduced."
    for link in re.findall(r'(?:href|src)="([^"]*)"', page):
        target, _, anchor = link.partition("#")
        assert not target or (folder / target).exists(), link
        assert not anchor or f'id="{anchor}"' in (folder / (target or "report.html")).read_text("utf-8"), link
    assert "stand-in: drawn" in page


def test_the_numbers_behind_a_claim_are_in_the_file(report) -> None:
    folder, _ = report
    with (folder / "numbers.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [(line["setting"], line["value"], line["low"], line["state"]) for line in lines] == [
        ("<script>", "-2.05", "-2.1", "within")
    ]


def test_a_quick_run_leaves_claims_about_full_data_undecided(tmp_path: Path) -> None:
    store = Store(tmp_path, "quick")
    measure_tasks([TINY], store, lambda _: True, lambda line: None)
    shown = build_report({"tiny": TINY}, store, tmp_path)
    assert shown["sentence"].endswith("1 need the full run.")


def test_equal_measurements_give_equal_reports(report, tmp_path: Path) -> None:
    folder, _ = report
    before = {name: (folder / name).read_bytes() for name in ("report.html", "summary.md", "figures/figure-1.svg")}
    build_report({"tiny": TINY}, Store(folder, "full"), folder)
    assert before == {name: (folder / name).read_bytes() for name in before}


@pytest.mark.parametrize("span", [1.3, 4.0, 30.0, 1e3, 1e7])
def test_an_axis_has_three_labelled_ticks(span: float) -> None:
    figure, (axis,) = panels()
    axis.plot([2.0, 2.0 * span], [5e-4, 5e-4 * span])
    log_scales(axis)
    figure.canvas.draw()
    for side, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
        places = [x for x in side.get_majorticklocs() if limits[0] <= x <= limits[1]]
        assert len(places) >= 3


@pytest.mark.parametrize(
    ("arguments", "sentence"), [(["nothing"], "must be some of"), (["--report-only"], "needs measurements")]
)
def test_errors_of_the_command_teach(arguments, sentence, tmp_path, capsys) -> None:
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("text", ['{"experiment": "lem', "[]", "{}"])
def test_a_damaged_measurement_is_named(text, tmp_path: Path, capsys) -> None:
    path = tmp_path / "measurements" / "lemmas--lemma-1.json"
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    assert main(["lemmas", "--out", str(tmp_path)]) == 2
    assert f"{path} is damaged; remove it." in capsys.readouterr().err
    assert path.read_text("utf-8") == text


def test_the_folder_of_something_else_is_left_alone(tmp_path: Path, capsys) -> None:
    (tmp_path / "summary.md").write_text("mine", "utf-8")
    assert main(["lemmas", "--out", str(tmp_path)]) == 2
    assert "must be a new or empty folder" in capsys.readouterr().err
    assert main(["lemmas", "--out", str(tmp_path / "summary.md")]) == 2
    assert "must be a folder that can be written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["summary.md"]


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, capsys, monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduction.__main__.measure_tasks", interrupted)
    assert main(["lemmas", "--out", str(tmp_path)]) == 2
    assert "goes on where it was" in capsys.readouterr().err


def test_sizes_are_not_mixed(tmp_path: Path, capsys) -> None:
    Store(tmp_path, "full").save("x", Task("y", rows), [], {"seconds": 0, "load": None})
    assert main(["--quick", "--out", str(tmp_path)]) == 2
    assert "one size" in capsys.readouterr().err
    assert json.loads(next((tmp_path / "measurements").iterdir()).read_text())["mode"] == "full"


def test_the_command_measures_judges_and_resumes(tmp_path: Path, capsys) -> None:
    assert main(["curved_sets", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "Schatten-1.5" in said
    assert main(["curved_sets", "--out", str(tmp_path)]) == 0
    assert "Schatten-1.5" not in capsys.readouterr().out
    line = next(x for x in (tmp_path / "summary.md").read_text("utf-8").splitlines() if "Theorem 1, Section 3.1" in x)
    assert "holds" in line
    assert len(discover()["curved_sets"].tasks("quick")) == len(list((tmp_path / "measurements").iterdir()))
