"""`python -m weft` is the command `weft`: `weft --help` says what it can do."""

import sys

from weft._command import main as _main


def main() -> None:
    """Run the command, and end with its exit code."""
    sys.exit(_main())


if __name__ == "__main__":
    main()
