"""Tests that do not name a device are about values, versions and schedules: they run on the reference device, or on
that of WEFT_DEVICE. Tests with the mark `host` are about devices whose memory is the process's own."""

import os

import pytest

DEVICE = os.environ.setdefault("WEFT_DEVICE", "REF")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "host: what holds only where memory is the process's own, and on its kernels")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if DEVICE.startswith(("REF", "CPU")):
        return
    skip = pytest.mark.skip(reason=f"memory of {DEVICE} is not the process's own")
    for item in items:
        if item.get_closest_marker("host"):
            item.add_marker(skip)
