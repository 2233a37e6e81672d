"""Tuning of the methods in the benchmark of matrix completion, one fit at a time: what is done is kept in a file."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

import numpy as np
from completion_data import held_out, scale


class Pieces:
    """Figures by their names, found once: with a file, also those of earlier calls, of which each may do a few."""

    def __init__(self, path=None, most=None):
        self.path, self.left = path, most
        self.known = json.loads(Path(path).read_text()) if path is not None and Path(path).exists() else {}

    def get(self, name, find):
        """The figure of a name, which ``find`` finds; where this call has done its part, the program ends."""
        if name not in self.known:
            if self.left == 0:
                raise SystemExit(f"stopped before {name}; the same command goes on from here")
            self.left = None if self.left is None else self.left - 1
            self.known[name] = find()
            if self.path is not None:
                Path(self.path).write_text(json.dumps(self.known, indent=1))
        return self.known[name]


class Tuned:
    """``fit`` with the settings whose RMSE on the tuning tenth is least."""

    def __init__(self, fit, settings):
        self.fit, self.settings = fit, settings

    def settled(self, train, pieces, name):
        """The fit with the settings that a training part chooses; ``name`` is what this is called among the pieces."""
        found = [pieces.get(f"{name} {one}", partial(self.error, train, one)) for one in self.settings]
        best = self.settings[int(np.argmin([error for error, _ in found]))]
        note = f"{best} of {len(found)}, tuning took {sum(seconds for _, seconds in found):.0f} CPU s"
        at_end = self.at_end(best)
        note += f", at an end of the grid of {' and '.join(at_end)}" if at_end else ""
        return lambda train: (self.fit(train, **best)[0], note)

    def at_end(self, best):
        """The names of the numbers that vary among the settings and are the smallest or the largest in the best."""
        grids = {name: {one[name] for one in self.settings} for name in best}
        return [name for name, grid in grids.items() if len(grid) > 1 and best[name] in (min(grid), max(grid))]

    def given(self, number):
        """The fit with one of the settings, for who has no time to tune."""
        return lambda train: (self.fit(train, **self.settings[number])[0], f"{self.settings[number]}, not tuned")

    def error(self, train, chosen):
        """The RMSE of one of the settings on the tuning tenth, and the seconds of the processor that it took."""
        begun, (inside, out) = time.process_time(), held_out(train)
        predict, _ = self.fit(inside, **chosen)
        found = float(np.sqrt(np.mean((np.clip(predict(out[:2]), *scale(train)) - out[2]) ** 2)))
        print(f"  {chosen}: {found:.4f}", flush=True)
        return found, time.process_time() - begun
