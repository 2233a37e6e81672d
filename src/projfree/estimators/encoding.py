"""Preprocessing of tables for the command line: an encoder of text and missing numbers that is saved without pickle.

The encoder is a `ColumnTransformer`. Numbers pass through or are imputed by their medians; text columns are one-hot
encoded. Saving writes its columns, levels and medians.
"""

from __future__ import annotations

from typing import Any

#: The level of missing text.
MISSING = "(missing)"


def table_encoder(numbers: list[str], text: dict[str, Any], *, impute: bool = False) -> Any:
    """Make an unfitted encoder for the columns of a data frame.

    Parameters
    ----------
    numbers : list of str
        Columns of numbers.
    text : dict
        Columns of text, each with its levels, or with None to learn them in `fit`. Unknown levels are encoded as zeros.
    impute : bool
        Whether to replace missing numbers by the median of the fit; else they pass through.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [30, None, 50], "city": ["Rome", "Oslo", "Rome"]})
    >>> table_encoder(["age"], {"city": None}, impute=True).fit_transform(frame)
        age  city=Oslo  city=Rome
    0  30.0        0.0        1.0
    1  40.0        1.0        0.0
    2  50.0        0.0        1.0
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    learned = not text or None in text.values()
    levels = OneHotEncoder(
        categories="auto" if learned else [list(known) for known in text.values()],
        handle_unknown="ignore",
        sparse_output=False,
        feature_name_combiner=_level_name,
    )
    as_text = FunctionTransformer(text_columns, feature_names_out="one-to-one")
    parts = [
        ("numbers", SimpleImputer(strategy="median") if impute else "passthrough", list(numbers)),
        ("text", make_pipeline(as_text, levels), list(text)),
    ]
    encoder = ColumnTransformer([part for part in parts if part[2]], verbose_feature_names_out=False)
    return encoder.set_output(transform="pandas")


def text_columns(frame: Any) -> Any:
    """Convert entries to stripped text, and missing entries to a level of their own."""
    stripped = frame.astype(object).map(lambda value: str(value).strip())
    return stripped.where(frame.notna(), MISSING).astype(object)


def _level_name(column: str, level: Any) -> str:
    return f"{column}={level}"


def pack_encoder(encoder: Any) -> dict[str, Any]:
    """Convert a fitted encoder to plain values for `projfree.persist`: its columns, levels and medians."""
    parts = {name: (part, columns) for name, part, columns in encoder.transformers}
    if not set(parts) <= {"numbers", "text"}:
        raise TypeError("`save` writes encoders of the command `projfree` only; save the estimator alone.")
    (imputer, numbers), text = parts.get("numbers", ("passthrough", [])), parts.get("text", (None, []))[1]
    medians = None if imputer == "passthrough" else encoder.named_transformers_["numbers"].statistics_.tolist()
    levels = encoder.named_transformers_["text"][-1].categories_ if text else []
    named = [[name, list(map(str, known))] for name, known in zip(text, levels, strict=True)]
    return {"numbers": list(numbers), "medians": medians, "text": named}


def unpack_encoder(tree: Any) -> Any:
    """Rebuild the encoder of `pack_encoder`, by fitting it to one row that holds the medians."""
    import pandas as pd

    numbers, medians, text = tree["numbers"], tree["medians"], {name: levels for name, levels in tree["text"]}
    strings = [*numbers, *text, *(level for levels in text.values() for level in levels)]
    if not all(isinstance(string, str) for string in strings) or len(numbers) + len(text) == 0:
        raise ValueError("its encoder has no columns")
    row = dict(zip(numbers, medians or [0.0] * len(numbers), strict=True)) | {name: text[name][0] for name in text}
    return table_encoder(numbers, text, impute=medians is not None).fit(pd.DataFrame([row]))
