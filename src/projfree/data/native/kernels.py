"""Kernels for one storage, one step and one loss each, made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from projfree.data.native import compiling, known_images, one_output, several_outputs
from projfree.numerics.forms import Form

FACTORIES: dict[str, Callable[..., Any]] = {
    "c_blocks": one_output.c_blocks,
    "f_blocks": one_output.f_blocks,
    "csr_blocks": one_output.csr_blocks,
    "output_blocks": several_outputs.output_blocks,
    "direct_blocks": several_outputs.direct_blocks,
    "fold_blocks": known_images.fold_blocks,
}


def specialised(factory: str, kind: str, form: Form | None, several: bool, coupled: bool, labels: bool) -> Any:
    """A kernel for a storage and a kind of step, with a loss compiled into it."""
    tile = form.slopes if form and kind == "slopes" else form.tile if form and kind != "images" else None
    flags = [True if flag else None for flag in (kind == "tangent", kind == "slopes", several, coupled, labels)]
    return compiling.kernel(FACTORIES[factory](tile, *flags, compiling.form(tile)))
