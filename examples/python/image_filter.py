"""Filters on a picture through views of it, in place: a border, a blur, a sharpened part, a mirrored half.

    python examples/python/image_filter.py [PICTURE.pgm]

Without a picture it draws one. The result is filtered.pgm, or where --output says.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from weft import Tensor, counters

SIZE = 256


def drawing() -> np.ndarray:
    """Rings and a diagonal."""
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float32)
    rings = 127 + 127 * np.sin(np.hypot(x - SIZE / 2, y - SIZE / 2) / 6)
    rings[np.abs(x - y) < 3] = 255
    return rings.astype(np.float32)


def read_pgm(path: str) -> np.ndarray:
    """A picture of one byte per pixel."""
    kind, width, height, most, rest = Path(path).read_bytes().split(None, 4)
    if kind != b"P5" or most != b"255":
        raise SystemExit(f"{path} is not a PGM of bytes (P5)")
    size = int(width) * int(height)
    return np.frombuffer(rest[-size:], np.uint8).reshape(int(height), int(width)).astype(np.float32)


def write_pgm(path: str, picture: np.ndarray) -> None:
    height, width = picture.shape
    Path(path).write_bytes(b"P5\n%d %d\n255\n" % (width, height) + picture.clip(0, 255).astype(np.uint8).tobytes())


def filtered(image: Any) -> Any:
    """The same lines for weft's tensors and for NumPy's arrays: what is a view there is a view here."""
    height, width = image.shape
    inner = image[8:-8, 8:-8]                       # views: all of them see every write
    top, left = image[:height // 2], image[:, :width // 2]
    part = image[height // 4:height // 2, width // 2:3 * width // 4]

    soft = (image[:-2, 1:-1] + image[2:, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:] + 4 * image[1:-1, 1:-1]) / 8
    inner[:] = soft[7:-7, 7:-7]                     # a blur, written through a view; `soft` keeps what it read
    part[1:-1, 1:-1] += 2 * (part[1:-1, 1:-1] - soft[height // 4:height // 2 - 2, width // 2:3 * width // 4 - 2])
    image[:, width // 2:] = left[:, ::-1]           # the left half, mirrored
    top[::8] = 0                                    # every eighth row of the upper half
    image[:8] = image[-8:] = 255
    image[:, :8] = image[:, -8:] = 255
    return image


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?")
    parser.add_argument("--output", default="filtered.pgm")
    options = parser.parse_args()
    picture = read_pgm(options.picture) if options.picture else drawing()
    counters.reset()
    image = filtered(Tensor(picture))
    lazy = counters.kernels
    result = image.numpy()
    difference = float(np.abs(result - filtered(picture.copy())).max())
    write_pgm(options.output, result)
    print(f"{picture.shape[1]} x {picture.shape[0]} pixels, {lazy} kernels before it was asked for, {counters.kernels} in all;")
    print(f"NumPy's result differs by at most {difference:.2g}; {options.output}")
    return 0 if difference < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
