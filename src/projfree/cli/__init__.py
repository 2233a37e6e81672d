"""The command `projfree`; its subcommands are one module each."""

from projfree.cli.app import main

__all__ = ["main"]
