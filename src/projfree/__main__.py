"""``python -m projfree`` is the command."""

from projfree.cli import main

if __name__ == "__main__":
    main()
