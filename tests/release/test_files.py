"""What a release is described by: one version, a citation that can be read, workflows that are well formed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import projfree

yaml = pytest.importorskip("yaml")
TOP = Path(__file__).parents[2]
WORKFLOWS = sorted((TOP / ".github" / "workflows").glob("*.yml"))


def test_one_version() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    citation = yaml.safe_load((TOP / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == projfree.__version__


def test_the_address_of_the_repository_stands_in_two_files() -> None:
    """So that a move is a change of two files."""
    address = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    citation = yaml.safe_load((TOP / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == address
    texts = [TOP / "README.md", TOP / "SECURITY.md", TOP / "CONTRIBUTING.md", *WORKFLOWS]
    folders = ("docs", "src", "reproduction", "examples", "benchmarks", "benchmark_norm_ball", "tools")
    texts += [path for folder in folders for kind in ("py", "md") for path in (TOP / folder).rglob(f"*.{kind}")]
    assert [path for path in texts if address in path.read_text(encoding="utf-8")] == []


def test_links_of_the_readme_lead_somewhere_on_a_package_index_too() -> None:
    pytest.importorskip("hatchling")
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    project = ProjectMetadata(str(TOP), PluginManager()).core
    assert project.readme_content_type == "text/markdown"
    links = re.findall(r"\]\((.*?)\)", project.readme)
    place = f"{project.urls['Source']}/blob/main/"
    files = [TOP / link.removeprefix(place) for link in links if link.startswith(place)]
    assert len(files) > 5
    assert [path for path in files if not path.is_file()] == []
    assert [link for link in links if not link.startswith("https://")] == []


def test_citation_names_the_paper_and_its_authors() -> None:
    paper = yaml.safe_load((TOP / "CITATION.cff").read_text(encoding="utf-8"))["preferred-citation"]
    assert [person["family-names"] for person in paper["authors"]] == ["Rector-Brooks", "Wang", "Mozafari"]
    assert (paper["type"], paper["year"]) == ("conference-paper", 2019)


def test_workflows_are_well_formed() -> None:
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}  # more is granted to single jobs
        assert all(("uses" in step) != ("run" in step) for job in workflow["jobs"].values() for step in job["steps"])


def test_workflows_call_targets_that_exist() -> None:
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    called = {target for path in WORKFLOWS for target in re.findall(r"make ([\w-]+)", path.read_text(encoding="utf-8"))}
    assert called
    for target in called:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
