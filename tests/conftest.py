"""Tests that do not name a device are about values, versions and schedules: they run on the reference device, or on
that of WEFT_DEVICE. Tests with the mark `host` are about devices whose memory is the process's own."""

import os

import pytest

DEVICE = os.environ.setdefault("WEFT_DEVICE", "REF")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--one-in", type=int, default=1, help="run one in so many tests of each file")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "host: what holds only where memory is the process's own, and on its kernels")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share = config.getoption("--one-in")
    left_out = [item for k, item in enumerate(items) if k % share != share // 2]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for k, item in enumerate(items) if k % share == share // 2]
    if DEVICE.startswith(("REF", "CPU")):
        return
    skip = pytest.mark.skip(reason=f"memory of {DEVICE} is not the process's own")
    for item in items:
        if item.get_closest_marker("host"):
            item.add_marker(skip)
