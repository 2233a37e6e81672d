"""The report in a real browser: drawn, sorted, within the window, without a complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import resources

import pytest
from tiny_run import FACTS, TINY_EXPERIMENTS

from reproduction.drawing import state_map
from reproduction.report import build
from reproduction.report.page import page as whole_page

pytestmark = pytest.mark.slow
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PROBE = """<script>
const complain = (words) => { document.documentElement.dataset.complaint = words; };
addEventListener("error", (event) => complain(event.message));
addEventListener("unhandledrejection", (event) => complain(String(event.reason)));
console.error = (...words) => complain(words.join(" "));
const look = setInterval(() => {
  if (document.documentElement.dataset.ready !== "yes") return;
  clearInterval(look);
  const root = document.documentElement, plots = [...document.querySelectorAll(".plot")];
  root.dataset.plots = plots.length;
  const marks = "svg.main-svg .trace, svg.main-svg .point, svg.main-svg .hm image";  // a map is an image
  root.dataset.drawn = plots.filter((plot) => plot.querySelector(marks)).length;
  root.dataset.wide = root.scrollWidth > root.clientWidth;
  root.dataset.width = innerWidth;
  const outside = (e) => e.getBoundingClientRect().right > innerWidth + 1;
  const beyond = [...document.querySelectorAll("main *")].filter(outside);
  const cells = [...document.querySelectorAll("g.heatmap-label text")].map((e) => e.getBoundingClientRect());
  const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  root.dataset.cells = cells.length;
  root.dataset.overlaps = cells.filter((a, k) => cells.slice(k + 1).some((b) => over(a, b))).length;
  root.dataset.beyond = beyond.length ? beyond[0].outerHTML.slice(0, 120) : "";
}, 50);
</script>"""


RHOS = (0.2, 0.3, 0.5, 0.7, 0.9, 1.0, 1.5, 2.0)


@pytest.fixture(scope="module")
def page(tiny, tmp_path_factory):
    build(TINY_EXPERIMENTS, tiny, "python -m reproduction --quick --out x", figures=False)
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(
        (tiny / "report.html").read_text(encoding="utf-8").replace("<body>", f"<body>{PROBE}", 1), encoding="utf-8"
    )
    return path


#: The browser's own window is never narrower than 500 pixels, so the page is looked at in a frame.
FRAME = """<!doctype html><html><body>
<iframe src="{src}" width="{width}" height="900" style="border:0"></iframe><script>
const look = setInterval(() => {{
  const page = document.querySelector("iframe").contentDocument;
  if (!page || page.documentElement.dataset.beyond === undefined) return;
  clearInterval(look);
  Object.assign(document.documentElement.dataset, page.documentElement.dataset);
  const rows = [...page.querySelectorAll("#summary tbody tr")];
  document.documentElement.dataset.verdicts = rows.map((row) => row.dataset.verdict).join("");
}}, 50);
</script></body></html>"""


def opened(page, width, query=""):
    if BROWSER is None:
        pytest.skip("no Chromium here; Debian's package is called chromium")
    frame = page.with_name(f"frame-{width}.html")
    frame.write_text(FRAME.format(src=page.name + query, width=width), encoding="utf-8")
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    command += [f"--window-size={width + 100},1000", "--virtual-time-budget=20000", "--dump-dom", f"file://{frame}"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("Chromium does not start here within a minute")
    if "</html>" not in run.stdout:
        pytest.skip(f"Chromium cannot run here: {run.stderr.strip()[-200:]}")
    return run.stdout


def attribute(dom, name):
    found = re.search(rf'<html[^>]*data-{name}="([^"]*)"', dom)
    return None if found is None else found.group(1)


@pytest.mark.parametrize(("width", "query"), [(1440, "?sort=verdict"), (390, "")])
def test_everything_is_drawn_sorted_and_fits(page, width, query):
    dom = opened(page, width, query)
    assert attribute(dom, "complaint") is None
    assert attribute(dom, "ready") == "yes"
    assert attribute(dom, "width") == str(width)
    assert int(attribute(dom, "plots")) > 3
    assert attribute(dom, "drawn") == attribute(dom, "plots")
    assert attribute(dom, "wide") == "false"
    assert attribute(dom, "beyond") == ""
    found = list(attribute(dom, "verdicts"))
    assert (found == sorted(found)) == bool(query)


@pytest.mark.parametrize("width", [1440, 390])
def test_the_cells_of_a_map_do_not_run_into_each_other(tmp_path, width):
    places = {(name, rho): (-12.34 * rho, True) for name in ("FWLS", "FWLS, option B as printed") for rho in RHOS}
    panel = state_map("map", "Where it holds", places, "At most 0", "radius (the paper states none)", "method")
    one = TINY_EXPERIMENTS[0]
    text = whole_page([one], [], {one.name: [panel]}, FACTS, "python -m reproduction --quick", figures=False)
    path = tmp_path / "report.html"
    path.write_text(text.replace("<body>", f"<body>{PROBE}", 1), encoding="utf-8")
    dom = opened(path, width)
    assert attribute(dom, "complaint") is None
    assert attribute(dom, "cells") == "16"
    assert attribute(dom, "overlaps") == "0"


def test_paper_is_no_phone():
    """The width of a page of paper is below that of a narrow screen, and a table is printed as a table."""
    style = resources.files("reproduction.report") / "assets" / "page.css"
    narrow = re.findall(r"@media ([^{]*max-width[^{]*) {", style.read_text(encoding="utf-8"))
    assert narrow
    assert all(rule.startswith("screen and ") for rule in narrow)
