#!/usr/bin/env python3
"""Random loops of reads and writes, by PyTorch on its CPU and on device weft; what they leave must be equal, bit for bit.

    fuzz_torch_loops.py [--seed 1] [--count 1000] and the other options of fuzz_loops.py
"""

import torch
import weft.torch  # noqa: F401
from fuzz_loops import main

torch.set_num_threads(1)

if __name__ == "__main__":
    main("fuzz_torch_loops", __doc__ or "", "device")
