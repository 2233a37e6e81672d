"""`Workload`: what a choice of solver asks a function, apart from what it can compute."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Workload:
    """What a choice of solver depends on, apart from the shape of the parameter.

    Attributes
    ----------
    name : str
        The function in a few words.
    outputs : int
        Predictions for each row.
    own_rows : bool
        Whether each row belongs to a single column of the parameter, as with tasks.
    coupled : bool
        Whether the outputs of a row share one loss.
    data : str
        The kind of data, for messages; empty where there is none.
    form : {"auto", "gram", "data"}
        Whether the Gram matrix of a quadratic is asked for, ruled out or left to the plan.
    """

    name: str
    outputs: int
    own_rows: bool = False
    coupled: bool = False
    data: str = ""
    form: str = "auto"

    def __str__(self) -> str:
        return f"{self.name} on {self.data}" if self.data else self.name
