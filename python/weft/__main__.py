"""`python -m weft devices` lists the devices: what runs each, or why it is missing.

With --verbose also what each is taken for when kernels are chosen."""

import sys

from weft import Device


def devices(verbose: bool) -> None:
    """One line per device; its machine in lines below, if asked for."""
    entries = Device.all()
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        default = "*" if entry.name == Device.DEFAULT else " "
        text = f"missing: {entry.missing}" if entry.missing else entry.description
        print(f"{default} {entry.name:<{width}}  {text}".rstrip())
        if verbose and not entry.missing:
            for line in Device.machine(entry.name).splitlines():
                print(f"    {line}")


def main() -> None:
    """Run the command that is named."""
    if sys.argv[1:] not in (["devices"], ["devices", "--verbose"]):
        sys.exit("usage: weft devices [--verbose]")
    devices(verbose="--verbose" in sys.argv)


if __name__ == "__main__":
    main()
