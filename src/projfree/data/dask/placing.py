"""Which worker has which partition."""

from __future__ import annotations

from collections.abc import Sequence


class Placement:
    """The address of the worker of each place, as far as the client knows; it never decides about digits."""

    def __init__(self) -> None:
        self._at: dict[int, str] = {}

    def put(self, place: int, address: str) -> None:
        """Note where a partition was found."""
        self._at[place] = address

    def renumber(self, numbers: Sequence[int]) -> None:
        """Leave out partitions that have no rows: places are from now on those in ``numbers``."""
        self._at = {place: self._at[number] for place, number in enumerate(numbers)}

    def groups(self, places: Sequence[int]) -> dict[str, list[int]]:
        """The places that each worker has, in order."""
        found: dict[str, list[int]] = {}
        for place in places:
            found.setdefault(self._at[place], []).append(place)
        return found

    def moves(self, workers: Sequence[str]) -> dict[int, str]:
        """Places to give to workers that have none, with their new addresses, so that all have about as many.

        Only workers that have joined get some: partitions that lie unevenly because others have put them there stay.
        """
        groups = self.groups(list(self._at))
        idle = [address for address in workers if address not in groups]
        if not idle:
            return {}
        share = len(self._at) // len(workers)
        out: dict[int, str] = {}
        for address in idle:
            for _ in range(share):
                largest = max(groups, key=lambda one: (len(groups[one]), one))
                if len(groups[largest]) <= share:
                    break
                out[groups[largest].pop()] = address
        return out

    def workers(self) -> int:
        """How many workers have partitions."""
        return len(set(self._at.values()))

    def most(self) -> int:
        """The most partitions that one worker has."""
        return max(len(own) for own in self.groups(list(self._at)).values())
