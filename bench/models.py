"""Whole models, from the graph to compiled kernels: weft beside tinygrad.

    python models.py weft|tinygrad MODEL STEP schedule|compile     one measurement, in this process: prints a JSON object

The models are one text for both, with `Tensor` and `nn` of either: GPT-2-small (1x128 tokens, Adam) and ResNet-18
(1x3x224x224, SGD with momentum). A step is "forward" or "train": forward, loss, backward and the optimiser's step, as one
schedule. schedule: CPU seconds from the lazy graph to the list of kernels, on a device that runs nothing, the median of
REPEATS graphs in one process. compile: wall seconds from the graph to all kernels compiled for the CPU, with an empty
cache on disk, the least of ROUNDS processes. Nothing of the step runs.
"""
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import cpu

REPEATS, ROUNDS = 5, 2
SECONDS = 30  # of repeats in one process; the first is made in any case
LIMIT = 600  # seconds of a process
MARKS = {"schedule": 50, "compile": 10}
TITLES = {"gpt2": "GPT-2-small", "resnet18": "ResNet-18"}


class GPT2:
    """GPT-2: blocks of attention and a perceptron, with norms before them; words in and out by one table."""

    def __init__(self, library, layers=12, width=768, heads=12, words=50257, places=1024):
        nn, self.Tensor = library.nn, library.Tensor
        self.heads, self.wte, self.wpe = heads, nn.Embedding(words, width), nn.Embedding(places, width)
        self.blocks = [{"norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width),
                        "norm2": nn.LayerNorm(width), "up": nn.Linear(width, 4 * width),
                        "down": nn.Linear(4 * width, width)} for _ in range(layers)]
        self.norm = nn.LayerNorm(width)

    def __call__(self, ids):
        batch, length = ids.shape
        x = self.wte(ids) + self.wpe(self.Tensor.arange(length).reshape(1, length))
        for block in self.blocks:
            x = x + block["out"](self.attention(block["qkv"](block["norm1"](x))))
            x = x + block["down"](block["up"](block["norm2"](x)).gelu())
        return self.norm(x).matmul(self.wte.weight.transpose(0, 1))

    def attention(self, qkv):
        batch, length, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
        q, k, v = (qkv[:, :, i*width:(i+1)*width].reshape(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for i in range(3))
        heard = q.scaled_dot_product_attention(k, v, is_causal=True)
        return heard.transpose(1, 2).reshape(batch, length, width)

    @staticmethod
    def loss(logits, ids):
        return logits.reshape(-1, logits.shape[-1]).sparse_categorical_crossentropy(ids.reshape(-1))


class ResidualBlock:
    def __init__(self, nn, inputs, outputs, stride):
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm(outputs)
        self.downsample = [] if stride == 1 and inputs == outputs else \
            [nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm(outputs)]

    def __call__(self, x):
        straight = x.sequential(self.downsample)
        return (self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())) + straight).relu()


class ResNet:
    """ResNet-18, or one of fewer channels; names of tensors as in torchvision."""

    def __init__(self, library, channels=64, classes=1000, blocks=2):
        nn = library.nn
        self.conv1 = nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm(channels)
        self.layers, inputs = [], channels
        for i in range(4):
            outputs = channels << i
            self.layers += [ResidualBlock(nn, inputs if j == 0 else outputs, outputs, 2 if i > 0 and j == 0 else 1)
                            for j in range(blocks)]
            inputs = outputs
        self.fc = nn.Linear(inputs, classes)

    def __call__(self, x):
        x = self.bn1(self.conv1(x)).relu().max_pool2d(kernel_size=(3, 3), stride=2, padding=1)
        return self.fc(x.sequential(self.layers).mean(axis=(2, 3)))

    @staticmethod
    def loss(logits, classes):
        return logits.sparse_categorical_crossentropy(classes)


class Weft:
    name = "weft"

    def __init__(self):
        import weft
        from weft import nn
        self.Tensor, self.nn, self.clear_caches = weft.Tensor, nn, weft._core.clear_schedule_cache

    def training(self, on):
        self.Tensor.training = on

    def fill(self, thing):
        """What is held is in memory, whatever its values."""
        tensors = list(self.nn.state.get_state_dict(thing).values())
        if tensors:
            tensors[0].realize(*tensors[1:])

    def schedule(self, tensors):
        return tensors[0].kernel_count(*tensors[1:])

    def compile(self, tensors):
        return len(tensors[0].schedule(*tensors[1:]))


class Tinygrad:
    name = "tinygrad"

    def __init__(self):
        import tinygrad
        from tinygrad import nn
        from tinygrad.helpers import TRAINING
        from tinygrad.schedule import indexing
        from tinygrad.uop import divandmod
        self.Tensor, self.nn, self.TRAINING = tinygrad.Tensor, nn, TRAINING
        self.caches = indexing._apply_reshape, indexing.apply_movement_op, divandmod.fold_divmod_general

    def clear_caches(self):
        for cache in self.caches:
            cache.cache_clear()

    def training(self, on):
        self.TRAINING.value = int(on)

    def fill(self, thing):
        for tensor in self.nn.state.get_state_dict(thing).values():
            tensor.replace(self.Tensor.empty(*tensor.shape, dtype=tensor.dtype).realize())

    def schedule(self, tensors):
        return len(tensors[0].schedule_linear(*tensors[1:]).src)

    def compile(self, tensors):
        from tinygrad.engine.realize import compile_linear
        return len(compile_linear(tensors[0].schedule_linear(*tensors[1:])).src)


def make_gpt2(library, layers=12, length=128, **sizes):
    """The model, its optimiser, an input and what is wanted of it."""
    model = GPT2(library, layers, **sizes)
    optimizer = library.nn.optim.Adam(library.nn.state.get_parameters(model), lr=1e-3)
    ids, wanted = (library.Tensor([[7] * length]).realize() for _ in range(2))
    return model, optimizer, ids, wanted


def make_resnet18(library, **sizes):
    model = ResNet(library, **sizes)
    optimizer = library.nn.optim.SGD(library.nn.state.get_parameters(model), lr=1e-3, momentum=0.9)
    return model, optimizer, library.Tensor.empty(1, 3, 224, 224).realize(), library.Tensor([7]).realize()


MODELS = {"gpt2": make_gpt2, "resnet18": make_resnet18}


def step_of(library, model, optimizer, x, wanted, is_training):
    """What one step computes: lazy tensors."""
    library.training(is_training)
    if not is_training:
        return [model(x)]
    loss = model.loss(model(x), wanted)
    optimizer.zero_grad()
    loss.backward()
    return [loss, *optimizer.schedule_step()]


def prepared(library, model):
    parts = MODELS[model](library)
    library.fill(parts[0])
    library.fill(parts[1])
    return parts


def measure_schedule(library, model, is_training):
    build_s, schedule_s, kernels, start = [], [], 0, time.monotonic()
    for i in range(REPEATS + 1):  # the first is not counted: it sets up what an engine makes once
        if i > 1 and time.monotonic() - start > SECONDS:
            break
        parts = prepared(library, model)
        gc.collect()
        library.clear_caches()
        begin = time.process_time()
        tensors = step_of(library, *parts, is_training)
        built = time.process_time()
        kernels = library.schedule(tensors)
        schedule_s.append(time.process_time() - built)
        build_s.append(built - begin)
        del tensors, parts
    return {"kernels": kernels, "build": statistics.median(build_s[1:]), "schedule": statistics.median(schedule_s[1:])}


def measure_compile(library, model, is_training):
    tensors = step_of(library, *prepared(library, model), is_training)
    start = time.perf_counter()
    kernels = library.compile(tensors)
    return {"kernels": kernels, "compile": time.perf_counter() - start}


def run_once(build, engine, model, step, what):
    """The JSON of this file as a program, or why there is none."""
    cpu.progress(f"{TITLES[model]}, {step}: {engine}, {what}")
    with tempfile.TemporaryDirectory() as folder:
        environment = cpu.environment(build, engine, folder)
        if what == "schedule":
            environment.update(WEFT_DEVICE="NULL", DEV="NULL", SCACHE="0")  # SCACHE=0: tinygrad keeps no schedules
        try:
            done = subprocess.run([sys.executable, __file__, engine, model, step, what], capture_output=True, text=True,
                                  timeout=LIMIT, env=environment)
        except subprocess.TimeoutExpired:
            return f"more than {LIMIT} s"
        finally:
            cpu.progress()
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:100]


def measure(build, engine, model, step):
    result = run_once(build, engine, model, step, "schedule")
    for _ in range(ROUNDS):
        if isinstance(result, str):
            return result
        compiled = run_once(build, engine, model, step, "compile")
        if isinstance(compiled, str):
            return compiled
        result = {**result, "cpu_kernels": compiled["kernels"],
                  "compile": min(compiled["compile"], result.get("compile", compiled["compile"]))}
    return result


def report(build):
    engines = cpu.begin("; milliseconds; cold: from the graph to kernels compiled for the CPU; targets in brackets")
    print(f"{'model':<14}{'step':<10}{'engine':<10}{'kernels':>9}{'on CPU':>9}{'build':>11}{'schedule':>11}{'cold':>12}"
          f"{'schedule ratio':>17}{'cold ratio':>14}")
    for model in MODELS:
        for step in ("forward", "train"):
            ours = None
            for engine in engines:
                result = measure(build, engine, model, step)
                ours = ours or result
                head = f"{TITLES[model]:<14}{step:<10}{engine:<10}"
                if isinstance(result, str):
                    print(f"{head}{result}", flush=True)
                    continue
                times = f"{result['build']*1e3:>11,.1f}{result['schedule']*1e3:>11,.1f}{result['compile']*1e3:>12,.1f}"
                ratios = ""
                if engine != "weft" and isinstance(ours, dict):
                    ratios = "".join(f"{result[k] / ours[k]:>{w}.0f} [{MARKS[k]}]"
                                     for k, w in (("schedule", 12), ("compile", 9)))
                print(f"{head}{result['kernels']:>9}{result['cpu_kernels']:>9}{times}{ratios}", flush=True)


def main():
    name, model, step, what = sys.argv[1:]
    gc.disable()  # the kinder setting for tinygrad, which makes more objects
    library = Weft() if name == "weft" else Tinygrad()
    result = (measure_schedule if what == "schedule" else measure_compile)(library, model, step == "train")
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # taking the graph apart is not measured


if __name__ == "__main__":
    main()
