"""Tests that do not name a device are about values, versions and schedules: they run on the reference device."""

import os

os.environ.setdefault("WEFT_DEVICE", "REF")
