"""`python -m weft devices` lists the devices: what runs each, or why it is missing."""

import sys

from weft import Device


def devices() -> None:
    """One line per device."""
    entries = Device.all()
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        default = "*" if entry.name == Device.DEFAULT else " "
        text = f"missing: {entry.missing}" if entry.missing else entry.description
        print(f"{default} {entry.name:<{width}}  {text}".rstrip())


def main() -> None:
    """Run the command that is named."""
    if sys.argv[1:] != ["devices"]:
        sys.exit("usage: weft devices")
    devices()


if __name__ == "__main__":
    main()
