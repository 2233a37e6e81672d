"""Wheel and sdist: built, installed away from the repository, and used."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
SMOKE = """
import numpy as np
import projfree
from projfree import ConstrainedClassifier, LpBall, Objective, Squared, as_data, load, minimize
from projfree.datasets import load_adult, load_year_sample

assert "site-packages" not in projfree.__file__ and "src" not in projfree.__file__.split("/"), projfree.__file__
songs, adult = load_year_sample(), load_adult()
f = Objective(Squared(), as_data(songs.X[:500], songs.y[:500]), fit_intercept=True)
result = minimize(f, LpBall(1.5, radius=2.0))
assert result.status.converged and result.certificate.verify(songs.X[:500], songs.y[:500]).ok
model = ConstrainedClassifier(radius=2.0).fit(adult.X[:2000], adult.y[:2000])
model.save("model")
assert (load("model").predict(adult.X[:50]) == model.predict(adult.X[:50])).all()
print(projfree.__version__)
"""
pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel, built from the sdist, and the sdist."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    ask = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(TOP)]
    subprocess.run(ask, check=True, capture_output=True, text=True)
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


def test_what_the_wheel_says_and_holds(packages: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(packages[0]) as wheel:
        names = wheel.namelist()
        told = Parser().parsestr(wheel.read(next(n for n in names if n.endswith("METADATA"))).decode())
    assert told["License-Expression"] == "BSD-3-Clause AND CC-BY-4.0"
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "projfree/datasets/files/ATTRIBUTION.md" in names
    assert any("licenses/" in name and name.endswith("ATTRIBUTION.md") for name in names)
    assert packages[0].name.endswith("-py3-none-any.whl")  # no compiler is needed
    assert not [name for name in names if name.startswith(("tests/", "benchmark", "examples/", "reproduction/"))]
    assert {url.split(",")[0] for url in told.get_all("Project-URL")} >= {"Homepage", "Documentation", "Issues"}
    assert "/blob/main/docs/tour.md" in told.get_payload()


def test_what_the_sdist_holds(packages: tuple[Path, Path]) -> None:
    with tarfile.open(packages[1]) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}
    assert {"pyproject.toml", "LICENSE", "CITATION.cff", "SECURITY.md", "tests/test_public.py", "docs/conf.py"} <= names
    # What tests of the release read.
    assert {
        ".github/workflows/ci.yml",
        "benchmark_norm_ball/objective.py",
        "reproduction/templates/report.html",
        "tools/package_readme.py",
    } <= names
    assert not [
        name for name in names if name.startswith(("docs/_build", "docs/gallery", "docs/api/", "benchmarks/scratch"))
    ]


def test_the_installed_wheel_works_without_the_repository(packages: tuple[Path, Path], tmp_path: Path) -> None:
    place = tmp_path / "installed"
    ask = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(place)]
    subprocess.run([*ask, str(packages[0])], check=True, capture_output=True)
    environment = {"PYTHONPATH": str(place), "PATH": str(Path(sys.executable).parent), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SMOKE], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-c", "from projfree.cli import main; main()", "--version"]
    listed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert listed.stdout.startswith("projfree ")
