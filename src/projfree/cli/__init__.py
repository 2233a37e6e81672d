"""The command `projfree`; its subcommands are one module each."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C while the package is still being loaded ends it with a sentence as well."""
    try:
        from projfree.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted; nothing was written.\n")
        raise SystemExit(130) from None
