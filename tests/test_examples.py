"""Every example of the gallery runs, and draws one figure whose title serves as its alternative text."""

import ast
import importlib.util
import os
import re
import runpy
import warnings
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
#: What takes more than a few seconds, as the site has it.
CONF = (Path(__file__).parents[1] / "docs" / "conf.py").read_text(encoding="utf-8")
SLOW = ast.literal_eval(re.search(r"^SLOW = (\(.+\))$", CONF, flags=re.MULTILINE)[1])


def marked(path: Path) -> object:
    """The example with the marks that it needs."""
    missing = [name for name in re.findall(r"^import (\w+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
               if importlib.util.find_spec(name) is None]  # fmt: skip
    marks = [pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")]
    return pytest.param(path, id=path.stem, marks=[*marks, *([pytest.mark.slow] if path.stem in SLOW else [])])


@pytest.mark.parametrize("path", [marked(path) for path in EXAMPLES])
def test_example(path: Path) -> None:
    plt.switch_backend("Agg")
    plt.close("all")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        runpy.run_path(str(path), run_name="__main__")
    assert len(plt.get_fignums()) == 1
    figure = plt.gcf()
    assert figure.get_suptitle() or any(ax.get_title() for ax in figure.axes)
    if "PROJFREE_FIGURES" in os.environ:
        figure.savefig(Path(os.environ["PROJFREE_FIGURES"]) / f"{path.stem}.png", dpi=90)
    plt.close("all")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_gallery_header(path: Path) -> None:
    """A title with its underline, then what the figure shows."""
    title, rule, text = re.match(r'"""\n(.+)\n(=+)\n\n(.+?)\n"""', path.read_text(encoding="utf-8"), re.DOTALL).groups()
    assert len(rule) == len(title)
    assert text.endswith(".")


def test_the_gallery_has_an_order() -> None:
    place = Path(__file__).parents[1] / "docs" / "_ext" / "gallery_order.py"
    order = runpy.run_path(str(place))["Position"]("examples")
    assert sorted(map(order, map(str, EXAMPLES))) == list(range(len(EXAMPLES)))
