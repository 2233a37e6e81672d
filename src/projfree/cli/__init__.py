"""The command `projfree`, with one module for each subcommand."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. If a package of the extra ``cli`` is missing, print how to install it."""
    try:
        from projfree.cli.app import main as run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("projfree"):
            raise
        sys.stderr.write(f"Error: the command needs {error.name}; pip install 'projfree[cli]'.\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted; nothing was written.\n")
        raise SystemExit(130) from None
    run()
