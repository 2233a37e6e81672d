"""Lazy import of the public names of a package, which its stub file lists.

Type checkers and editors read the stub file ``__init__.pyi``. It is also the only list of the names and their modules,
with one line each, as in SPEC 1 of Scientific Python:

    from projfree.sets.box import Box as Box
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pkgutil import get_data
from typing import Any

STUB_LINE = re.compile(r"^from ([\w.]+) import (\w+) as", re.MULTILINE)


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, in the order of its stub file.

    Lines ``from package import module as module`` are modules, which are not in ``__all__``.
    """
    stub = (get_data(package, "__init__.pyi") or b"").decode("utf-8")
    module_of = {name: module for module, name in STUB_LINE.findall(stub)}

    def load(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        own = importlib.import_module(f"{package}.{name}" if module == package else module)
        value = own if module == package else getattr(own, name)
        setattr(sys.modules[package], name, value)  # so that the next access does not call `load`
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    for name, module in module_of.items():
        if module == f"{package}.{name}":  # otherwise importing the module would hide the name
            load(name)
    return load, names, [name for name, module in module_of.items() if module != package]


def exported_classes(package: str, kind: type) -> tuple[Any, ...]:
    """Return the concrete subclasses of ``kind`` that a package exports, in the order of its stub file."""
    module = sys.modules[package]
    values = [getattr(module, name) for name in module.__all__ if not name.isupper()]
    classes = [value for value in values if isinstance(value, type) and issubclass(value, kind)]
    return tuple(each for each in classes if not getattr(each, "__abstractmethods__", None))
