"""`Workload`: what one evaluation of a function costs, in the terms that the plan counts in."""

from __future__ import annotations

from dataclasses import dataclass


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
    round_numbers : float
        The time of a round trip to the rows, in numbers that memory gives in it; zero where they are here.
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
    round_numbers: float = 0.0

    def __str__(self) -> str:
        return f"{self.name} on {self.data}" if self.data else self.name
