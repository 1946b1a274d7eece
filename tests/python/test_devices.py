"""`weft.Device` and `weft devices`: what there is, and why something is not."""

import subprocess
import sys

import pytest

import weft
from weft import Device, Tensor, array_api, dtypes


def test_those_that_need_no_driver_are_there() -> None:
    assert {"REF", "NULL"} <= set(Device.names())


def test_every_device_is_described_or_says_why_it_is_missing() -> None:
    entries = {entry.name: entry for entry in Device.all()}
    assert len(entries) == len(Device.all())
    assert "CUDA" in entries
    for entry in entries.values():
        assert not (entry.missing and entry.name in Device.names())


def test_a_missing_one_cannot_be_used_and_says_why() -> None:
    missing = [entry for entry in Device.all() if entry.missing and entry.name == "CUDA"]
    if not missing:
        pytest.skip("there is a GPU")
    with pytest.raises(weft.DeviceError) as error:
        Tensor([1.0], device="CUDA")
    assert missing[0].missing in str(error.value)


def test_the_default_can_be_set() -> None:
    before = Device.DEFAULT
    try:
        Device.DEFAULT = "REF"
        assert Tensor([1.0]).device == "REF"
        with pytest.raises(weft.DeviceError, match="there is no device NOWHERE"):
            Device.DEFAULT = "NOWHERE"
        assert Device.DEFAULT == "REF"
    finally:
        Device.DEFAULT = before


def test_missing_dtypes_are_those_that_raise() -> None:
    assert Device.missing_dtypes("REF") == Device.missing_dtypes("CPU") == []
    for name in Device.names():
        missing = Device.missing_dtypes(name)
        assert set(missing) <= {dtypes.float64}
        for dtype in (dtypes.float32, dtypes.float64):
            if dtype in missing:
                with pytest.raises(weft.DTypeError, match=f"the device {name} has no {dtype.name}"):
                    Tensor.ones(2, dtype=dtype, device=name)
            else:
                assert Tensor.ones(2, dtype=dtype, device=name).realize().dtype == dtype
        listed = array_api.__array_namespace_info__().dtypes(device=name)
        assert not set(missing) & set(listed.values()) and "float32" in listed
    with pytest.raises(weft.DeviceError):
        Device.missing_dtypes("NOWHERE")


def test_synchronize_waits_for_any_device() -> None:
    for name in Device.names():
        Device.synchronize(name)
    Device.synchronize()
    with pytest.raises(weft.DeviceError):
        Device.synchronize("NOWHERE")


def test_the_command_lists_them() -> None:
    run = subprocess.run([sys.executable, "-m", "weft", "devices"], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert len(lines) == len(Device.all())
    assert any(line.split()[:2] == ["*", Device.DEFAULT] for line in lines)
    assert subprocess.run([sys.executable, "-m", "weft"], capture_output=True, check=False).returncode != 0


def test_machines_are_printed() -> None:
    assert "a launch" in Device.machine("REF")
    command = [sys.executable, "-m", "weft", "devices"]
    short = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    full = subprocess.run([*command, "--verbose"], check=True, capture_output=True, text=True).stdout
    assert "a launch" not in short
    assert all(f"    {line}" in full for line in Device.machine("REF").splitlines())
