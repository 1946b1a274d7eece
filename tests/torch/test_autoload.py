"""`import torch` finds device weft by the metadata of the package."""

import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys

import pytest
from on_both_devices import torch  # noqa: F401  (skips where it is missing)

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(code: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_device_needs_no_import():
    assert run("import torch; print(torch.ones(2, device='weft').tolist())") == "[1.0, 1.0]"


def test_importing_the_package_first():
    assert run("import weft.torch, torch; print(torch.weft.device_count())") == "1"


def test_autoloading_can_be_switched_off():
    assert run("import sys, torch; print('weft' in sys.modules)", TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "False"


def test_a_process_with_few_addresses():
    """Addresses of the device's tensors are reserved in pieces where one range for all is not to be had."""
    code = ("import resource, torch; resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))\n"
            "many = [torch.full((1 << 20,), i, device='weft') for i in range(40)]\n"
            "print(len({t.data_ptr() for t in many}), int(sum(many)[-1]))")
    assert run(code) == "40 780"


def test_decompositions_wait_for_an_operator_that_needs_them():
    code = ("import weft.torch, torch; from weft.torch._decompositions import decomposed\n"
            "(torch.ones(2, device='weft') + 1).tolist(); print(len(decomposed()))\n"
            "torch.linalg.eigvals(torch.ones(2, 2, device='weft')).tolist(); print(len(decomposed()) > 0)")
    assert run(code) == "0\nTrue"


def test_the_wheel_has_the_entry_point_of_the_build():
    points = importlib.metadata.entry_points(group="torch.backends", name="weft")
    value, = {point.value for point in points}
    assert re.search(r'\[project.entry-points."torch.backends"\]\nweft = "(.*)"',
                     (ROOT / "pyproject.toml").read_text()).group(1) == value


@pytest.mark.parametrize("error", ["ImportError('made for another PyTorch')"])
def test_a_device_that_does_not_load_is_passed_over(error):
    code = (f"import sys, importlib; import weft._torch_autoload as a\n"
            f"def fail(name): raise {error}\n"
            "a.importlib.import_module = fail\n"
            "import warnings; warnings.simplefilter('ignore'); a.autoload(); print('passed over')")
    assert run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "passed over"
