"""A `TableEncoder` as plain values, and back, checked."""

from __future__ import annotations

from typing import Any

from projfree.estimators.saved_model import finite, need
from projfree.estimators.table_encoder import TableEncoder


def pack_encoder(encoder: TableEncoder) -> dict[str, Any]:
    """The encoder in the terms of `projfree.persist`."""
    one_hot = encoder.one_hot if isinstance(encoder.one_hot, str) else [str(name) for name in encoder.one_hot]
    return {
        "one_hot": one_hot,
        "impute": encoder.impute,
        "columns": list(encoder.columns_),
        "levels": [[name, list(levels)] for name, levels in encoder.levels_.items()],
        "fill": [[name, float(value)] for name, value in encoder.fill_.items()],
    }


def unpack_encoder(tree: Any) -> TableEncoder:
    """Undo `pack_encoder`."""
    need(isinstance(tree, dict) and _texts(tree.get("columns")), "its encoder names no columns")
    need(tree["impute"] in (None, "median", "drop"), "its encoder imputes in an unknown way")
    need(isinstance(tree["one_hot"], str) or _texts(tree["one_hot"]), "its encoder encodes no columns")
    encoder = TableEncoder(one_hot=tree["one_hot"], impute=tree["impute"])
    encoder.columns_, encoder.levels_, encoder.fill_ = tree["columns"], {}, {}
    for name, levels in tree["levels"]:
        need(name in encoder.columns_ and _texts(levels), "its encoder has levels of no column")
        encoder.levels_[name] = levels
    for name, value in tree["fill"]:
        need(name in encoder.columns_, "its encoder fills no column")
        encoder.fill_[name] = float(finite("a median of its encoder", value, ()))
    return encoder


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value) and len(set(value)) == len(value)
