"""Random fits of estimators: no bound is refuted, and true certificates are verified on every storage."""

from __future__ import annotations

import warnings
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from agreement.fits import LOSSES, better, draw_fit

STORAGES = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
    "frame": pd.DataFrame,
}
TOL, ITERATIONS = 1e-6, 200


def check(seed: int, folder: Path) -> None:
    fit = draw_fit(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rounding may hide the last digits of a gap
        model, tight = (fit.fitted(tol=tol, max_iter=ITERATIONS) for tol in (TOL, 1e-12))
    result, least = model.result_, min(fit.exact_value(each, model.radius_) for each in (model, tight))
    assert Decimal(result.bound) <= least, f"{fit}: bound above a feasible value by {Decimal(result.bound) - least:.3e}"
    order = np.random.default_rng(seed).permutation(len(fit.y))
    weight = None if fit.weight is None else fit.weight[order]
    if fit.parts and fit.x_offset and not model.fit_intercept:
        return  # moments about zero lose the digits that large means take, so that their value is not that of the rows
    for name, storage in STORAGES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a frame has names, the fit had none
            assert model.verify(storage(fit.X), fit.y, fit.weight).ok, f"{fit}: {name}"
            assert model.verify(storage(fit.X[order]), fit.y[order], weight).ok, f"{fit}: {name}, other order"
    if not fit.free:  # which needs the rows in memory
        np.save(folder / "X.npy", fit.X)
        assert model.verify(folder / "X.npy", fit.y, fit.weight).ok, f"{fit}: file"
    # Squares are compared about their means; for other losses the rounding of what no ball holds grows with its range.
    offset = max(fit.y_offset, fit.x_offset)
    plain = (fit.squares and model.fit_intercept) or not (offset if fit.squares else fit.x_offset or fit.free)
    if plain and offset <= 1e9 and result.relative_gap <= TOL:
        for forged in better(result.certificate):
            model.result_ = replace(result, certificate=forged)
            assert not model.verify(fit.X, fit.y, fit.weight).ok, f"{fit}: {forged}"


@pytest.mark.parametrize("seed", range(40))
def test_fits(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40, 660))
def test_more_fits(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


def test_the_fits_cover_everything() -> None:
    fits = [draw_fit(seed) for seed in range(40)]
    assert {getattr(f.model, "loss", "logistic") for f in fits} >= set(LOSSES) - {"logistic"}
    assert any(hasattr(f.model, "predict_proba") for f in fits)
    for holds in (
        lambda f: f.parts,
        lambda f: f.model.radius is None and f.model.p == 1.0,
        lambda f: f.parts and f.y_offset > 1e10,
        lambda f: f.free and f.x_offset > 1e10,
        lambda f: f.free and f.model.standardize,
        lambda f: f.y_offset > 1e10 and f.model.loss != "squared",
        lambda f: f.weight is not None and f.x_offset,
    ):
        assert any(holds(f) for f in fits)
