"""Entry point of ``python -m projfree``."""

from projfree.cli import main

if __name__ == "__main__":
    main()
