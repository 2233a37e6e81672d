"""Make the packaged data files from the originals: ``PROJFREE_DATA=... python tools/pack_datasets.py``.

Reads ``adult/adult.data[.gz]``, ``adult/adult.test[.gz]`` and ``year_prediction_msd_sample/*.parquet`` (needs
pyarrow), checks them, and writes ``adult.npz`` and ``year_sample.npz`` next to the loaders.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from projfree import datasets
from projfree.datasets.adult import CATEGORICAL, COLUMNS, N_TRAIN, NUMERIC
from projfree.datasets.year import FEATURES, decode_columns

SHA256 = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}


def original(folder: Path, name: str) -> str:
    """The text of an original file, checked by its checksum."""
    plain = folder / name
    content = plain.read_bytes() if plain.is_file() else gzip.decompress((folder / f"{name}.gz").read_bytes())
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise ValueError(f"{name} in {str(folder)!r} is not the original: its sha256 differs.")
    return content.decode("ascii")


def pack_adult(folder: Path) -> dict[str, NDArray[np.generic]]:
    """Codes, levels and numbers of both files, one after the other."""
    lines = original(folder, "adult.data").splitlines() + original(folder, "adult.test").splitlines()[1:]
    fields = np.array([line.rstrip(".").split(", ") for line in lines if line])
    columns = dict(zip([*COLUMNS, "label"], fields.T, strict=True))
    arrays: dict[str, NDArray[np.generic]] = {"label": columns["label"] == ">50K"}
    for name in NUMERIC:
        arrays[name] = columns[name].astype(np.int32)
    for name in CATEGORICAL:
        levels, codes = np.unique(columns[name], return_inverse=True)
        arrays["levels " + name], arrays[name] = levels, codes.astype(np.uint8)
    return arrays


def pack_year(folder: Path) -> dict[str, NDArray[np.generic]]:
    """The sample as whole numbers of 1e-5, counted from each column's lowest and split into planes of bytes.

    High bytes vary little within a column, so planes compress well: 2.1 MB against 5.0 MB of doubles.
    """
    import pyarrow.parquet as pq

    (path,) = folder.glob("*.parquet")
    table = pq.read_table(path)
    X = np.column_stack([table[name].to_numpy() for name in FEATURES])
    source = table["source"].to_numpy(zero_copy_only=False)
    if list(source) != ["random_train_5000"] * 5_000 + ["random_test_2000"] * 2_000:
        raise ValueError(f"{str(path)!r} does not hold 5,000 training rows and then 2,000 test rows.")
    whole = np.rint(X * 1e5).astype(np.int64).T
    lowest = whole.min(axis=1)
    offsets = np.ascontiguousarray(whole - lowest[:, None]).astype("<u8")
    n_bytes = (int(offsets.max()).bit_length() + 7) // 8
    planes = offsets.view(np.uint8).reshape(*offsets.shape, 8).transpose(2, 0, 1)[:n_bytes]
    if decode_columns(planes, lowest).tobytes() != X.tobytes():
        raise ValueError(f"{str(path)!r} has more than five decimals; the packing would not be exact.")
    return {"planes": np.ascontiguousarray(planes), "lowest": lowest, "year": table["year"].to_numpy()}


def main() -> None:
    """Write both files and say how large they are."""
    data, files = Path(os.environ["PROJFREE_DATA"]), Path(datasets.__file__).parent / "files"
    adult, year = pack_adult(data / "adult"), pack_year(data / "year_prediction_msd_sample")
    if len(adult["label"]) != N_TRAIN + 16_281:
        raise ValueError(f"Adult has {len(adult['label'])} rows, not 48,842.")
    for name, arrays in {"adult.npz": adult, "year_sample.npz": year}.items():
        np.savez_compressed(files / name, **arrays)
        print(f"{name}: {(files / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
