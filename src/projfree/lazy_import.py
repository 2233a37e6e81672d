"""Names of a package that are imported when they are first asked for: those that its stub file lists.

The file ``__init__.pyi`` is what type checkers and editors read. Here it is also the one list of the names and of the
modules that they are in, one line each, as in SPEC 1 of Scientific Python:

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
    """The functions ``__getattr__`` and ``__dir__`` of a package, and its ``__all__``, in the order of the stub file.

    Lines ``from package import module as module`` are modules, which are no names of ``__all__``.
    """
    stub = (get_data(package, "__init__.pyi") or b"").decode("utf-8")
    module_of = {name: module for module, name in STUB_LINE.findall(stub)}

    def load(name: str) -> Any:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        own = importlib.import_module(f"{package}.{name}" if module == package else module)
        value = own if module == package else getattr(own, name)
        setattr(sys.modules[package], name, value)  # so that it is looked up once
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    for name, module in module_of.items():
        if module == f"{package}.{name}":  # it would hide the name once somebody else has imported it
            load(name)
    return load, names, [name for name, module in module_of.items() if module != package]


def exported_classes(package: str, kind: type) -> tuple[Any, ...]:
    """The concrete subclasses of ``kind`` that a package exports, in the order of its stub file."""
    module = sys.modules[package]
    values = [getattr(module, name) for name in module.__all__ if not name.isupper()]
    classes = [value for value in values if isinstance(value, type) and issubclass(value, kind)]
    return tuple(each for each in classes if not getattr(each, "__abstractmethods__", None))
