"""Steps of training on device "weft" beside PyTorch's CPU: `make bench BENCH_ARGS=torch`.

    python torch_device.py WHAT MODEL     one measurement, in this process: prints a JSON object

Models are those of torch_models.py. times: seconds of a step (median of STEPS) on device weft, with its
torch.compile, on the CPU, and with PyTorch's own torch.compile, taken in turn. outside: the same on weft's device
that runs no kernels: what a step costs beside them. kernels: of a step, and of the same model in weft's own Tensor
(models.py). recording: microseconds of CPU to record an operator, and what PyTorch's CPU takes to do it on about 100
elements.
"""
import functools
import json
import os
import statistics
import subprocess
import sys
import time

STEPS = 7
WARM = 4  # steps before the first that is measured: kernels are found in them
LIMIT = 1800
MANY = 100  # parameters of a step of an optimiser that is recorded
TITLES = {"gpt2": "GPT-2-small", "resnet18": "ResNet-18", "transformer": "2-layer transformer"}


def seconds_of_steps(training, synchronize):
    def step():
        start = time.perf_counter()
        training.step()
        synchronize()
        return time.perf_counter() - start

    for _ in range(WARM):
        step()
    return step


def measure_times(model):
    import torch
    import weft.torch  # noqa: F401  the device
    from torch_models import Training
    from weft.torch._compile import backend

    def nothing():
        pass

    steps = {"weft": seconds_of_steps(Training(model, "weft"), torch.weft.synchronize),
             "weft compiled": seconds_of_steps(Training(model, "weft", backend), torch.weft.synchronize),
             "cpu": seconds_of_steps(Training(model, "cpu"), nothing)}
    try:
        steps["cpu compiled"] = seconds_of_steps(Training(model, "cpu", "inductor"), nothing)
    except Exception as error:  # inductor needs a compiler and more
        print(f"torch.compile: {error}", file=sys.stderr)
    taken = {name: [] for name in steps}
    for _ in range(STEPS):
        for name, step in steps.items():
            taken[name].append(step())
    fallbacks = torch.weft.counters()["fallback"]
    return {"seconds": {name: statistics.median(t) for name, t in taken.items()}, "fallbacks": fallbacks}


def measure_outside(model):
    import torch
    import weft.torch  # noqa: F401
    from torch_models import Training
    step = seconds_of_steps(Training(model, "weft"), torch.weft.synchronize)
    return {"seconds": statistics.median(step() for _ in range(STEPS))}


def own_kernels(model):
    """Of the same step in weft's own Tensor, in steady state."""
    import models
    import weft
    library = models.Weft()
    sizes = {"layers": 2, "length": 64, "width": 128, "heads": 4, "words": 1000, "places": 64} \
        if model == "transformer" else {}
    parts = models.MODELS["gpt2" if model == "transformer" else model](library, **sizes)
    library.fill(parts[0])
    library.fill(parts[1])
    counts = []
    for _ in range(3):
        tensors = models.step_of(library, *parts, True)
        before = weft.counters.kernels
        tensors[0].realize(*tensors[1:])
        counts.append(weft.counters.kernels - before)
    return counts[-1]


def measure_kernels(model):
    import torch
    import weft
    import weft.torch
    from torch_models import Training
    training = Training(model, "weft")
    counts = []
    for _ in range(4):
        before = weft.counters.kernels
        training.step()
        torch.weft.synchronize()
        counts.append(weft.counters.kernels - before)
    return {"device": counts[-1], "own": own_kernels(model)}


# A loop without Python in it: gradients are operators that Python reaches through boxes, which take longer than they do.
LOOP = """
def run({names}, times: int):
    results = torch.ops.aten.{call}
    for _ in range(times - 1):
        results = torch.ops.aten.{call}
    return results
"""


@functools.cache
def compiled_loop(names, call):
    import torch
    return torch.jit.CompilationUnit(LOOP.format(names=names, call=call)).run


def scripted(call, **tensors):
    run = compiled_loop(", ".join(tensors), call)
    return lambda times: run(*tensors.values(), times)


def recorded_operators(torch, device):
    """What is measured, by name: functions that do it so many times. Without wrappers in Python around what PyTorch binds."""
    functions, nn = torch._C._VariableFunctions, torch._C._nn

    def ones(*shape):
        return torch.ones(*shape, device=device)

    x, matrix, image, weight = ones(100), ones(10, 10), ones(1, 4, 5, 5), ones(4, 4, 3, 3)
    vector, scale, mean, of_groups, running = ones(4), ones(10), ones(10, 1), ones(1, 2), (ones(4), ones(4))
    columns, classes = ones(1, 16, 16), torch.zeros(10, dtype=torch.int64, device=device)
    state, steps = [[ones(100) for _ in range(MANY)] for _ in range(4)], [ones(()) for _ in range(MANY)]

    def adamw():
        functions._fused_adamw_(*state, [], steps, lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8,
                                amsgrad=False, maximize=False)

    def many(operator, at_once=1):
        def run(times):
            for _ in range(times // at_once):
                operator()
        return run

    operators = {
        "x + x": lambda: x + x,
        "x * 2.0": lambda: x * 2.0,
        "x.add_(x)": lambda: x.add_(x),
        "x.exp()": x.exp,
        "x.sum()": x.sum,
        "x.view(10, 10)": lambda: x.view(10, 10),
        "gelu": lambda: nn.gelu(x),
        "softmax": lambda: torch.softmax(x, 0),
        "logsumexp": lambda: torch.logsumexp(x, 0),
        "cumsum": lambda: x.cumsum(0),
        "normal_": x.normal_,
        "rand_like": lambda: torch.rand_like(x),
        "randn_like": lambda: torch.randn_like(x),
        "argmax": x.argmax,
        "max of an axis": lambda: matrix.max(1),
        "sort": x.sort,
        "topk": lambda: x.topk(5),
        "kthvalue": lambda: x.kthvalue(5),
        "median of an axis": lambda: matrix.median(1),
        "median": x.median,
        "mode": lambda: matrix.mode(1),
        "cummax": lambda: x.cummax(0),
        "cdist": lambda: functions.cdist(matrix, matrix, 2.0, None),
        "cross_entropy": lambda: nn.cross_entropy_loss(matrix, classes),
        "conv2d": lambda: torch.conv2d(image, weight, vector, padding=1),
        "max_pool2d": lambda: nn.max_pool2d_with_indices(image, [2, 2]),
        "adaptive_max_pool2d": lambda: nn.adaptive_max_pool2d(image, [2, 2]),
        "adaptive_avg_pool2d": lambda: nn.adaptive_avg_pool2d(image, [2, 2]),
        "unfold": lambda: nn.im2col(image, [2, 2], [1, 1], [0, 0], [1, 1]),
        "fold": lambda: nn.col2im(columns, [5, 5], [2, 2], [1, 1], [0, 0], [1, 1]),
        "batch_norm": lambda: torch.batch_norm(image, vector, vector, *running, False, 0.1, 1e-5, False),
        "batch_norm in training": lambda: torch.batch_norm(image, vector, vector, *running, True, 0.1, 1e-5, False),
        "layer_norm": lambda: torch.layer_norm(matrix, [10], scale, scale),
        "group_norm": lambda: torch.group_norm(image, 2, vector, vector),
        "rms_norm": lambda: torch.rms_norm(matrix, [10], scale),
    }
    gradients = {
        "gradients of conv2d": scripted(
            "convolution_backward(x, x, w, [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])",
            x=image, w=weight),
        "gradients of batch_norm": scripted(
            "native_batch_norm_backward(x, x, v, v, v, v, v, True, 1e-5, [True, True, True])", x=image, v=vector),
        "gradients of layer_norm": scripted(
            "native_layer_norm_backward(x, x, [10], m, m, w, w, [True, True, True])", x=matrix, m=mean, w=scale),
        "gradients of group_norm": scripted(
            "native_group_norm_backward(x, x, m, m, v, 1, 4, 25, 2, [True, True, True])", x=image, m=of_groups, v=vector),
    }
    return {**{name: many(operator) for name, operator in operators.items()}, **gradients,
            "fused AdamW, for each parameter": many(adamw, at_once=MANY)}


def measure_recording(_):
    import torch
    import weft.torch  # noqa: F401
    torch._C._set_graph_executor_optimize(False)  # loops of equal operators stay
    times, result = 2000, {}
    for device in ("weft", "cpu"):
        for name in recorded_operators(torch, device):
            best = float("inf")
            for _ in range(20):
                run = recorded_operators(torch, device)[name]
                run(MANY)
                start = time.thread_time()
                run(times)
                best = min(best, (time.thread_time() - start) / times)
            result.setdefault(name, {})[device] = best * 1e6
    return result


MEASURES = {"times": measure_times, "outside": measure_outside, "kernels": measure_kernels,
            "recording": measure_recording}


def run_once(build, what, model, device="CPU"):
    environment = {**os.environ, "PYTHONPATH": str(build / "python"), "WEFT_DEVICE": device}
    done = subprocess.run([sys.executable, __file__, what, model], capture_output=True, text=True, env=environment,
                          timeout=LIMIT)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def report(build):
    print(f"{'microseconds of CPU per operator':<36}{'weft':>8}{'PyTorch':>9}")
    for name, taken in run_once(build, "recording", "none").items():
        print(f"  {name:<34}{taken['weft']:>8.2f}{taken['cpu']:>9.2f}")
    print(f"\n{'kernels of a step of training':<36}{'device':>8}{'own':>9}{'ratio':>8}")
    for model in ("transformer", "resnet18"):
        counts = run_once(build, "kernels", model)
        print(f"  {TITLES[model]:<34}{counts['device']:>8}{counts['own']:>9}{counts['device'] / counts['own']:>8.2f}")
    print(f"\n{'a step of training, ms':<24}{'weft':>10}{'compiled':>10}{'PyTorch':>10}{'inductor':>10}{'ratio':>8}"
          f"{'outside':>9}")
    for model in ("resnet18", "gpt2"):
        times = run_once(build, "times", model)
        outside = run_once(build, "outside", model, "NULL")["seconds"]
        s = times["seconds"]
        columns = "".join(f"{s[name] * 1e3:>10.1f}" if name in s else f"{'-':>10}"
                          for name in ("weft", "weft compiled", "cpu", "cpu compiled"))
        print(f"  {TITLES[model]:<22}{columns}{s['cpu'] / s['weft']:>8.2f}{outside / s['weft']:>9.1%}")
        if times["fallbacks"]:
            print(f"    by PyTorch's CPU kernels: {times['fallbacks']}")


if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]](sys.argv[2])))
