"""The devices that tensors live on."""

import sys
from typing import NamedTuple

from weft import _core
from weft._core import DType

# Where PyPI's packages of NVIDIA put NVRTC.
for _folder in sys.path:
    if _folder.endswith("-packages"):
        for _package in ("cu13", "cuda_nvrtc"):
            _core.add_library_folder(f"{_folder}/nvidia/{_package}/lib")


class DeviceInfo(NamedTuple):
    """What is known of a device. `missing` says why it is not there; it is empty where it is."""

    name: str
    description: str
    missing: str


class _Device:
    """The devices of this process: `weft.Device`.

    >>> from weft import Device, Tensor
    >>> first = Device.DEFAULT  # WEFT_DEVICE, unless set since
    >>> Device.DEFAULT = "REF"
    >>> Tensor([1.0]).device
    'REF'
    >>> Device.DEFAULT = first
    >>> "CPU" in Device.names()
    True
    """

    @property
    def DEFAULT(self) -> str:  # noqa: N802
        """Where tensors are made when nothing else is said."""
        return _core.default_device()

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:  # noqa: N802
        _core.set_default_device(name)

    def all(self) -> list[DeviceInfo]:
        """All devices that there could be, with what runs them or why they are missing."""
        return [DeviceInfo(*entry) for entry in _core.device_list()]

    def names(self) -> list[str]:
        """Those that are there."""
        return [entry.name for entry in self.all() if not entry.missing]

    def machine(self, name: str = "") -> str:
        """What a device (the default one, unless named) is taken for when kernels are chosen: units, rates, memory."""
        return _core.machine_text(name)

    def missing_dtypes(self, name: str = "") -> list[DType]:
        """Those that a device (the default one, unless named) has not: tensors of them are a DTypeError there."""
        return _core.missing_dtypes(name)

    def synchronize(self, name: str = "") -> None:
        """Return when all that was started on a device (the default one, unless named) has been done."""
        _core.synchronize(name)


Device = _Device()
