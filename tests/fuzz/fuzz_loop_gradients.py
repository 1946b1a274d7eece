#!/usr/bin/env python3
"""Random loops of reads and writes, and gradients through them, on weft and by PyTorch's CPU.

    fuzz_loop_gradients.py [--seed 1] [--count 1000] and the other options of fuzz_loops.py
"""

from fuzz_loops import main

if __name__ == "__main__":
    main("fuzz_loop_gradients", __doc__ or "", "gradients")
