"""What goes along with a fit: what is shown and called."""

import io
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from projfree import (
    ConstrainedClassifier,
    ConstrainedClassifierCV,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    PrimalAveraging,
)

rng = np.random.default_rng(0)
X = rng.standard_normal((80, 5))
Y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.5 * rng.standard_normal(80)
SLOW = {"p": 1.5, "radius": 1.0, "solver": PrimalAveraging(), "tol": 0.0}

seen: list[int] = []


def note(run):
    seen.append(run.iteration)
    return run.iteration >= 7


@pytest.mark.parametrize("kind", [ConstrainedRegressor, ConstrainedClassifier])
@pytest.mark.parametrize("callbacks", [note, (note,), [note]])
def test_callbacks_are_called_and_survive_a_clone(kind, callbacks):
    y = Y if kind is ConstrainedRegressor else Y > 0
    model = clone(kind(**SLOW, callbacks=callbacks))
    seen.clear()
    assert model.fit(X, y).n_iter_ == 7
    assert seen == list(range(1, 8))
    seen.clear()
    GridSearchCV(model, {"radius": [0.5, 1.0]}, cv=2).fit(X, y)
    assert len(seen) == 5 * 7


def test_what_is_no_callback_is_refused():
    with pytest.raises(
        TypeError, match=r"^`callbacks` must be a function of the run, or a sequence of such functions, got 3;"
    ):
        ConstrainedRegressor(callbacks=[3]).fit(X, Y)
    with pytest.raises(ValueError, match=r"^`verbose` must be 0, 1 \(a progress bar\) or 2"):
        ConstrainedRegressor(verbose="much").fit(X, Y)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_verbose(capsys, monkeypatch):
    settings = {**SLOW, "tol": 1e-2}
    ConstrainedRegressor(**settings).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    model = ConstrainedRegressor(**settings, verbose=2).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == model.n_iter_
    assert err.startswith("iteration      1  passes ")
    ConstrainedRegressor(**settings, verbose=1).fit(X, Y)
    assert capsys.readouterr() == ("", "")  # no terminal
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr("sys.stderr", Terminal())
    ConstrainedRegressor(**settings, verbose=1).fit(X, Y)
    assert "certified gap" in sys.stderr.getvalue()


@pytest.mark.parametrize("kind", [ConstrainedRegressorCV, ConstrainedClassifierCV])
def test_callbacks_of_a_search_see_the_final_fit_alone(kind):
    y = Y if kind is ConstrainedRegressorCV else Y > 0
    settings = {"p": 1.5, "solver": PrimalAveraging(), "tol": 0.0, "max_iter": 9}
    model = clone(kind(**settings, radii=[0.5, 1.0], cv=2, callbacks=note))
    seen.clear()
    model.fit(X, y)
    assert seen == list(range(1, 8))
    assert model.n_iter_ == 7


@pytest.mark.filterwarnings("ignore:.*is the largest that was tried:UserWarning")
@pytest.mark.parametrize("kind", [ConstrainedRegressorCV, ConstrainedClassifierCV])
def test_a_search_shows_its_folds(kind, capsys, monkeypatch):
    y = Y if kind is ConstrainedRegressorCV else Y > 0
    kind(radii=4, cv=3, verbose=1).fit(X, y)
    assert capsys.readouterr() == ("", "")  # no terminal
    monkeypatch.setattr("sys.stderr", Terminal())
    kind(p=[1, 2], radii=4, cv=3, verbose=1).fit(X, y)
    shown = sys.stderr.getvalue()
    assert "cross-validation" in shown
    assert "of 6 fits" in shown
    with pytest.raises(ValueError, match=r"^`verbose` must be 0, 1 \(a progress bar\) or 2"):
        kind(verbose=-1).fit(X, y)
