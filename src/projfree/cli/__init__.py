"""The command `projfree`; its subcommands are one module each."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; without the packages of the extra ``cli``, print what to install."""
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
