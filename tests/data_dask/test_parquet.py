"""Folders of Parquet files that workers read, and the command line that has them do it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import psutil
import pytest
from typer.testing import CliRunner

from projfree import ConstrainedClassifier, ConstrainedRegressor, as_data
from projfree.cli.app import app
from projfree.cli.clusters import cluster_at
from projfree.estimators import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table):
    X, y, weight = table
    path = tmp_path_factory.mktemp("parts")
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        s=weight, number=X @ [1.0, 2.0, 0.0, -1.0, 0.5], label=np.where(y > 0, "yes", "no")
    )
    for k, part in enumerate(np.array_split(np.arange(240), 3)):
        frame.iloc[part].to_parquet(path / f"part-{k}.parquet")
    return path, frame


def test_workers_read_their_files(client, folder):
    path, frame = folder
    names = list("abcde")
    data = as_data(path, "number", "s", columns=names, client=client)
    assert (data.n, len(data.facts), data.feature_names) == (240, 3, tuple(names))
    model = ConstrainedRegressor(radius=1.0, tol=1e-8).fit(data)
    other = ConstrainedRegressor(radius=1.0, tol=1e-8).fit(frame[names], frame.number, frame.s)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-4, atol=1e-6)
    labelled = as_data(path, "label", columns=names, client=client)
    model = ConstrainedClassifier(radius=1.0).fit(labelled)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(labelled) == pytest.approx(model.score(frame[names], frame.label))
    with pytest.raises(TypeError, match="`y` and `sample_weight` must be names of columns where `X` is a folder"):
        as_data(path, frame.number.to_numpy(), client=client)


@pytest.fixture
def here(monkeypatch, threads):
    """The command uses the cluster of the tests, whatever it is told."""
    monkeypatch.setattr("projfree.cli.asked.cluster_at", lambda where: contextlib.nullcontext(threads))


def test_the_command_fits_on_a_cluster(here, folder, tmp_path):
    path, frame = folder
    out = tmp_path / "model"
    told = ["--target", "label", "--drop", "s", "--drop", "number", "--cluster", "local:2"]
    run = CliRunner().invoke(app, ["fit", str(path), *told, "--radius", "1", "--out", str(out), "--json"])
    assert run.exit_code == 0, run.output
    said = json.loads(run.stdout)
    assert (said["rows"], said["held_out_rows"], said["features"]) == (192, 48, 5)
    assert said["score"] > 0.6
    model = load(out)
    assert set(model.predict(frame[list("abcde")])) == {"no", "yes"}
    run = CliRunner().invoke(app, ["explain", str(path), *told])
    assert run.exit_code == 0, run.output
    assert "chosen:" in run.output
    assert "a round takes about 10 ms besides the read of the rows" in run.output.replace("\n", " ")


def test_workers_are_ended_where_a_command_fails(threads, folder, tmp_path, monkeypatch):
    ended = []

    @contextlib.contextmanager
    def cluster_at(where):
        try:
            yield threads
        finally:
            ended.append(where)

    monkeypatch.setattr("projfree.cli.asked.cluster_at", cluster_at)
    told = [str(folder[0]), "--target", "number", "--drop", "s", "--drop", "label", "--loss", "huber", "--cluster"]
    run = CliRunner().invoke(app, ["fit", *told, "local:2", "--out", str(tmp_path / "model")])
    assert "--loss huber takes its scale from single residuals" in run.output.replace("\n", " ")
    CliRunner().invoke(app, ["explain", *told, "local:3"])
    assert ended == ["local:2", "local:3"]


def test_text_files_and_odd_clusters_are_refused(here, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    out = ["--out", str(tmp_path / "m"), "--target", "y"]
    run = CliRunner().invoke(app, ["fit", str(tmp_path / "a.csv"), *out, "--cluster", "local"])
    assert "--cluster needs a Parquet file or a folder of those" in run.output.replace("\n", " ")
    for odd in ("local:x", "localhost", "nonsense", "tcp://host"):
        with pytest.raises(ValueError, match=f"--cluster must be tcp://host:port, local or local:workers, got {odd}"):
            cluster_at(odd).__enter__()


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "localhost:8786", "localnode:8786", "tls://[::1]:8786"])
def test_addresses_of_clusters_are_connected_to(monkeypatch, address):
    asked = []
    monkeypatch.setattr("distributed.Client", lambda where, timeout: contextlib.nullcontext(asked.append(where)))
    with cluster_at(address):
        assert asked == [address]


@pytest.mark.slow
def test_the_command_starts_workers_of_its_own(folder, tmp_path):
    told = ["--target", "number", "--drop", "s", "--drop", "label", "--cluster", "local:2", "--json"]
    run = CliRunner().invoke(app, ["fit", str(folder[0]), *told, "--radius", "1", "--out", str(tmp_path / "model")])
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["status"] == "converged"


def in_session(number):
    """The processes of a session that are not waiting for their parent to look at their end."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(process.pid) == number and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_ends_the_workers(tmp_path, interruptible):
    """The signal reaches the command and its workers alike."""
    rng, rows = np.random.default_rng(0), tmp_path / "rows"
    rows.mkdir()
    for k in range(2):
        X = rng.standard_normal((100_000, 5))
        label = np.where(X[:, 0] + rng.standard_normal(len(X)) > 0.0, "yes", "no")
        pd.DataFrame(X, columns=list("abcde")).assign(label=label).to_parquet(rows / f"part-{k}.parquet")
    told = ["--target", "label", "--loss", "squared_sigmoid", "--tol", "1e-15", "--radius", "1", "--verbose"]
    told += ["--cluster", "local:2", "--out", str(tmp_path / "model")]
    command = [sys.executable, "-m", "projfree", "fit", str(rows), *told]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as run:
        assert run.stderr is not None
        said = []
        while not said or not said[-1].startswith("iteration"):
            said.append(run.stderr.readline())
            assert said[-1], said
        begun = time.monotonic()
        os.killpg(run.pid, signal.SIGINT)
        said.append(run.stderr.read())
        assert run.wait(60.0) == 130, said
    assert time.monotonic() - begun < 20.0
    assert not in_session(run.pid)
    assert "Interrupted; nothing was written." in said[-1], said
    assert "Traceback" not in "".join(said)
