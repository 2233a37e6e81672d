"""Names of a package that are imported when they are first asked for, so that nobody loads what is not used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def on_first_use(package: str, places: Mapping[str, Iterable[str]]) -> tuple[Callable[[str], Any], Callable[[], Any]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its name.
    places : mapping of str to names
        Modules, those of the package with a dot before their names, and the names that each of them gives besides
        itself. No name may be that of a module of the package, which would hide it.
    """
    module_of = {name: place for place, names in places.items() for name in names}

    def found(name: str) -> Any:
        own = f".{name}"
        if name not in module_of and own not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(module_of.get(name, own), package)
        value = getattr(module, name) if name in module_of else module
        setattr(sys.modules[package], name, value)  # so that it is looked up once
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return found, listed
