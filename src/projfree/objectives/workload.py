"""`Workload` and `Traits`: what one evaluation of a function costs and what the function can do, for the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from projfree.objectives.base import SmoothFunction


@dataclass(frozen=True)
class Workload:
    """The numbers that a choice of solver depends on, apart from the shape of the parameter.

    Attributes
    ----------
    name : str
        The function in a few words.
    outputs : int
        Predictions for each row.
    stored : float
        Numbers that one read of the data takes.
    measured : bool
        Whether the plan's prices of passes and of searches were measured for this kind of function; a tangent of
        others counts as one read.
    own_rows : bool
        Whether each row belongs to a single column of the parameter, as with tasks.
    coupled : bool
        Whether the outputs of a row share one loss.
    searches : bool
        Whether a tangent takes a search for an intercept first.
    data : str
        The kind of data, for messages; empty where there is none.
    form : {"auto", "gram", "data"}
        Whether the Gram matrix of a quadratic is asked for, ruled out or left to the plan.
    """

    name: str
    outputs: int
    stored: float
    measured: bool = False
    own_rows: bool = False
    coupled: bool = False
    searches: bool = False
    data: str = ""
    form: str = "auto"

    def __str__(self) -> str:
        return f"{self.name} on {self.data}" if self.data else self.name


class Traits(NamedTuple):
    """What the rules of the plan ask a function, as values: a result keeps its plan, which must not keep the rows."""

    shape: tuple[int, ...]
    rows: int | None
    convex: bool
    quadratic: bool
    has_images: bool
    has_hessian: bool
    has_curvature: bool
    has_quadratic_form: bool

    @classmethod
    def of(cls, f: SmoothFunction) -> Traits:
        """The traits of a function."""
        able = (f.has_images, f.has_hessian, f.has_curvature, f.has_quadratic_form)
        return cls(f.shape, f.rows, f.convex, f.quadratic, *able)
