"""The command `projfree`; its subcommands are one module each."""

import sys

__all__ = ["main"]

INTERRUPTED = "Interrupted; nothing was written.\n"


def main() -> None:
    """Run the command line; Ctrl-C before the command begins ends it with a sentence as well."""
    try:
        from projfree.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write(INTERRUPTED)
        raise SystemExit(130) from None
    except SystemExit as end:
        # Typer turns what no command has caught into an exit without a word.
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            sys.stderr.write(INTERRUPTED)
        raise
