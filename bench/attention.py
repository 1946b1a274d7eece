"""Long attention: one pass over keys and values, beside the same with scores stored and beside PyTorch.

    PYTHONPATH=build/release/python python3 bench/attention.py

CPU time of all threads in milliseconds, the best of a few calls of each in turn, on two threads: elapsed times say
nothing on a loaded machine.
"""
import time

import numpy as np
import torch

from weft import Tensor

WIDTH = 64
SIZES = ((12, 1024, 8), (4, 2048, 6), (2, 4096, 4), (1, 8192, 3), (1, 16384, 2))  # heads, length, calls


def milliseconds(functions, calls):
    best = {name: float("inf") for name in functions}
    for f in functions.values():
        f()
    for _ in range(calls):
        for name, f in functions.items():
            start = time.process_time()
            f()
            best[name] = min(best[name], (time.process_time() - start) * 1e3)
    return best


def case(heads, length, calls):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((heads, length, WIDTH)).astype(np.float32) for _ in range(3)]
    q, k, v = (Tensor(x).realize() for x in arrays)
    theirs = [torch.from_numpy(x)[None] for x in arrays]
    attention = torch.nn.functional.scaled_dot_product_attention

    def stored():  # what has a name when the result is realised must exist
        scores = q @ k.transpose(-1, -2) / 8.0
        weights = scores.softmax(-1)
        (weights @ v).realize()

    return milliseconds({
        "scores stored": stored,
        "one pass": lambda: ((q @ k.transpose(-1, -2) / 8.0).softmax(-1) @ v).realize(),
        "one pass, causal": lambda: q.scaled_dot_product_attention(k, v, is_causal=True).realize(),
        "torch": lambda: attention(*theirs),
        "torch, causal": lambda: attention(*theirs, is_causal=True),
    }, calls)


def main():
    torch.set_num_threads(2)
    for heads, length, calls in SIZES:
        best = case(heads, length, calls)
        if heads == SIZES[0][0]:
            print("| heads x length x width | " + " | ".join(best) + " | GFLOP/s for each CPU second |")
            print("| --- " * (len(best) + 2) + "|")
        rate = 4 * heads * length * length * WIDTH / best["one pass"] / 1e6
        print(f"| {heads}x{length}x{WIDTH} | " + " | ".join(f"{t:.1f}" for t in best.values()) + f" | {rate:.0f} |",
              flush=True)


if __name__ == "__main__":
    main()
