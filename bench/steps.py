"""Steps whose graphs never repeat, steps whose graphs do, and what stays in memory: `make bench BENCH_ARGS=steps`.

    python steps.py CASE [DEVICE]     one case, in this process: prints a JSON object
    python steps.py --table CASE...   these cases, each in a process with an empty cache, as tables

A case is a function that makes what a step needs on a device and returns the step, which takes its number. For each step
on device weft: seconds by the clock and of the CPU, CPU seconds of each phase (weft.counters.seconds), schedules made or
read from disk, kernels lowered, texts compiled, kernels run, and the size of the process; beside it PyTorch's CPU.
"""
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

PHASES = ("import", "lookup", "roll", "rangeify", "split", "lower", "compile", "bind", "run")


def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def train(model, loss_of, device, make=None):
    """A step of training: loss_of(model, number of the step)."""
    import torch
    model.to(device)
    optimizer = (make or (lambda p: torch.optim.Adam(p, lr=1e-3)))(model.parameters())

    def step(i):
        optimizer.zero_grad()
        loss = loss_of(model, i)
        loss.backward()
        optimizer.step()
        return loss
    return step


# ---- graphs that never repeat

def lstm(device, lengths=(8, 40), widths=(16, 24), cells=False, steps=400):
    """A 2-layer LSTM on sequences whose length differs every step; `cells`: as cells that a program loops over."""
    import torch
    from torch import nn
    numbers = random.Random(0)
    width = 20
    sizes = [numbers.randint(*lengths) for _ in range(steps)]

    class Cells(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.ModuleList(nn.LSTMCell(n, 32) for n in (width, 32))

        def forward(self, x):
            states = [(x.new_zeros(x.shape[0], 32), x.new_zeros(x.shape[0], 32)) for _ in self.cells]
            for t in range(x.shape[1]):
                y = x[:, t]
                for k, cell in enumerate(self.cells):
                    states[k] = cell(y, states[k])
                    y = states[k][0]
            return y

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(width, 32, num_layers=2, batch_first=True)

        def forward(self, x):
            return self.lstm(x)[0][:, -1]

    def loss(model, i):
        return model(torch.randn(4, sizes[i], width).to(device)).square().mean()
    return train(Cells() if cells else Layers(), loss, device)


def lstm_widths(device):
    """A new LSTM each step: batch 4, 8 to 40 steps, 16 to 24 wide."""
    import torch
    from torch import nn
    numbers = random.Random(1)

    def step(_):
        width, length = numbers.randint(16, 24), numbers.randint(8, 40)
        model = nn.LSTM(width, width, num_layers=2, batch_first=True).to(device)
        loss = model(torch.randn(4, length, width).to(device))[0].square().mean()
        loss.backward()
        return torch.stack([p.grad.sum() for p in model.parameters()]).sum()
    return step


def transformer(device):
    import torch
    from torch_models import GPT2
    numbers = random.Random(2)
    lengths = [numbers.randint(8, 64) for _ in range(400)]

    def loss(model, i):
        ids = torch.randint(0, 1000, (2, lengths[i])).to(device)
        return model.loss(model(ids), ids)
    return train(GPT2(2, width=64, heads=4, words=1000, places=64), loss, device)


def experts(device, kind="mixtral"):
    """A mixture of experts whose routing, and so the shapes of what each gets, differs every step."""
    import torch
    import transformers
    common = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128}
    if kind == "mixtral":
        model = transformers.MixtralForCausalLM(transformers.MixtralConfig(num_local_experts=8, **common))
    else:
        model = transformers.Qwen3MoeForCausalLM(transformers.Qwen3MoeConfig(
            num_experts=8, num_experts_per_tok=2, moe_intermediate_size=64, head_dim=16, **common))

    def loss(model, i):
        ids = torch.randint(0, 256, (2, 24)).to(device)
        return model(input_ids=ids, labels=ids).loss
    return train(model, loss, device)


def plain_loop(device):
    """Operations and views in a loop, of which nothing is read; a step is 50 of them."""
    import torch
    state = {"x": torch.ones(64, 64).to(device)}
    numbers = random.Random(3)

    def step(_):
        x = state["x"]
        for _ in range(50):
            n = numbers.randint(1, 60)
            x = x + torch.randn(64, 64).to(device) * 0.01
            x[:n].mul_(0.5)
            y = x[n:].t() @ x[n:]
            x = torch.tanh(x + y * 0.001)
        state["x"] = x
        return x
    return step


# ---- graphs that repeat

def attention_layer(device):
    """A graph attention layer (GATv2) in plain torch: gathers, a softmax over edges, and scattered sums."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, inputs, heads, width):
            super().__init__()
            self.heads, self.width = heads, width
            self.left, self.right = nn.Linear(inputs, heads * width), nn.Linear(inputs, heads * width)
            self.score = nn.Parameter(torch.randn(1, heads, width))

        def forward(self, x, edges):
            source, target = edges
            left = self.left(x).view(-1, self.heads, self.width)
            right = self.right(x).view(-1, self.heads, self.width)
            scores = (nn.functional.leaky_relu(left[source] + right[target], 0.2) * self.score).sum(-1)
            most = torch.full((x.shape[0], self.heads), -1e30, device=x.device).scatter_reduce(
                0, target[:, None].expand_as(scores), scores.detach(), "amax")
            weights = (scores - most[target]).exp()
            total = torch.zeros(x.shape[0], self.heads, device=x.device).index_add(0, target, weights)
            weights = weights / total[target]
            out = torch.zeros(x.shape[0], self.heads, self.width, device=x.device)
            return out.index_add(0, target, weights[:, :, None] * left[source]).flatten(1)

    model = nn.ModuleList([Layer(16, 4, 8), Layer(32, 1, 7)])
    x = torch.randn(100, 16).to(device)
    edges = torch.randint(0, 100, (2, 400)).to(device)
    wanted = torch.randint(0, 7, (100,)).to(device)

    def loss(model, _):
        h = nn.functional.elu(model[0](nn.functional.dropout(x, 0.5), edges))
        return nn.functional.cross_entropy(model[1](h, edges), wanted)
    return train(model, loss, device)


def perceptron(width=32):
    from torch import nn
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.LayerNorm(width), nn.Linear(width, 8))


def autocast(device):
    import torch
    x = torch.randn(32, 16).to(device)

    def loss(model, _):
        with torch.autocast(device, dtype=torch.bfloat16):
            return model(x).float().square().mean()
    return train(perceptron(), loss, device)


class ScheduleFree:
    """AdamW without a schedule, as its authors' package writes it in plain operations."""

    def __init__(self, parameters, lr=2.5e-3, beta1=0.9, beta2=0.999, warmup=10):
        self.parameters, self.lr, self.beta1, self.beta2, self.warmup = list(parameters), lr, beta1, beta2, warmup
        self.state, self.k, self.weights = {}, 0, 0.0

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    def step(self):
        import torch
        with torch.no_grad():
            schedule = min((self.k + 1) / self.warmup, 1.0)
            correction = 1 - self.beta2 ** (self.k + 1)
            lr = self.lr * schedule
            weight = lr ** 2
            self.weights += weight
            part = weight / self.weights
            for p in self.parameters:
                if p not in self.state:
                    self.state[p] = (p.clone(), torch.zeros_like(p))
                z, squares = self.state[p]
                squares.mul_(self.beta2).addcmul_(p.grad, p.grad, value=1 - self.beta2)
                gradient = p.grad / squares.div(correction).sqrt_().add_(1e-8)
                gradient.add_(p, alpha=0.01)
                p.lerp_(z, weight=part)
                p.add_(gradient, alpha=lr * (self.beta1 * (1 - part) - 1))
                z.sub_(gradient, alpha=lr)
            self.k += 1


def schedule_free(device):
    import torch
    x = torch.randn(32, 16).to(device)
    return train(perceptron(), lambda model, _: model(x).square().mean(), device, ScheduleFree)


def parametrized(device):
    import torch
    from torch import nn
    from torch.nn.utils import parametrizations
    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(16, 32)), nn.Tanh(),
                          parametrizations.spectral_norm(nn.Linear(32, 32)), nn.Tanh(),
                          parametrizations.orthogonal(nn.Linear(32, 32), orthogonal_map="cayley"))
    x = torch.randn(32, 16).to(device)
    return train(model, lambda model, _: model(x).square().mean(), device)


def again(device):
    """The same program from its beginning, as functions of a library run it: a new model each step."""
    import torch

    def step(_):
        torch.manual_seed(0)
        inner = train(perceptron(), lambda model, _: model(x).square().mean(), device,
                      lambda p: torch.optim.AdamW(p, lr=1e-3))
        x = torch.randn(32, 16).to(device)
        for k in range(3):
            loss = inner(k).item()
        return torch.tensor(loss)
    return step


def video(device):
    """A transformer of images (ViT), trained with AdamW."""
    import torch
    import transformers
    model = transformers.VideoMAEForVideoClassification(transformers.VideoMAEConfig(
        image_size=32, patch_size=8, num_frames=4, hidden_size=64, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=128, num_labels=10))
    x, wanted = torch.randn(2, 4, 3, 32, 32).to(device), torch.randint(0, 10, (2,)).to(device)
    return train(model, lambda model, _: model(pixel_values=x, labels=wanted).loss, device,
                 lambda p: torch.optim.AdamW(p, lr=1e-3))


def lstm120(device):
    import torch
    from torch import nn
    x = torch.randn(4, 120, 32).to(device)
    return train(nn.LSTM(32, 32, batch_first=True), lambda model, _: model(x)[0].square().mean(), device)


def resnet(device):
    import torch
    from torch_models import ResNet
    x, wanted = torch.randn(2, 3, 64, 64).to(device), torch.randint(0, 10, (2,)).to(device)
    return train(ResNet(16, 10), lambda model, _: model.loss(model(x), wanted), device)


def bert(device):
    import torch
    import transformers
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=500, hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128))
    ids, wanted = torch.randint(0, 500, (2, 32)).to(device), torch.randint(0, 2, (2,)).to(device)
    return train(model, lambda model, _: model(input_ids=ids, labels=wanted).loss, device)


CASES = {  # steps
    "lstm": (lstm, 16), "lstm cells": (lambda device: lstm(device, cells=True), 16), "lstm widths": (lstm_widths, 16),
    "transformer": (transformer, 16), "mixtral": (experts, 12),
    "qwen3 moe": (lambda device: experts(device, "qwen3"), 12), "plain loop": (plain_loop, 12),
    "graph attention": (attention_layer, 12), "autocast": (autocast, 12), "schedule-free": (schedule_free, 12),
    "parametrized": (parametrized, 12), "again": (again, 8), "video": (video, 6), "lstm 120": (lstm120, 5),
    "resnet": (resnet, 4), "bert": (bert, 4),
}


def steps_on(device, case, count):
    import torch
    synchronize, counters = (lambda: None), None
    if device == "weft":
        import weft
        import weft.torch  # noqa: F401
        counters, synchronize = weft.counters, torch.weft.synchronize
        counters.time_phases()
    torch.manual_seed(0)
    step, records = CASES[case][0](device), []
    for i in range(count):
        if counters:
            counters.reset()
        begin, cpu = time.perf_counter(), time.process_time()
        loss = step(i)
        loss = float(loss.detach().float().mean().item())
        synchronize()
        record = {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "loss": loss, "rss": rss()}
        if counters:
            record |= {"phases": dict(counters.seconds), "schedules": counters.schedules,
                       "lowered": counters.lowered, "compiled": counters.compiled, "kernels": counters.kernels}
        records.append(record)
    return records


def measure(case, device, count=None, cache=None):
    with tempfile.TemporaryDirectory(prefix="weft-steps-") as folder:
        environment = {**os.environ, "WEFT_CACHE_DIR": cache or folder}
        if cache:
            os.makedirs(cache, mode=0o700, exist_ok=True)
        done = subprocess.run([sys.executable, __file__, case, device, str(count or CASES[case][1])],
                              capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            return None, done.stderr
        records = json.loads(done.stdout.splitlines()[-1])
        if records and device == "weft" and not cache:
            entries = list(pathlib.Path(folder).rglob("*"))
            records[-1]["files"] = len(entries)
    return records, ""


def table(case, count=None):
    ours, error = measure(case, "weft", count)
    theirs, other = measure(case, "cpu", count)
    if not ours or not theirs:
        print(f"{case}: {(error or other).strip().splitlines()[-1:]}")
        return
    cpu = statistics.median(r["cpu"] for r in theirs[1:])
    print(f"\n{case}: PyTorch's CPU takes {cpu * 1e3:.1f} ms of CPU a step, {theirs[0]['cpu'] * 1e3:.0f} ms its first; "
          f"{ours[-1].get('files', 0)} files in the cache afterwards")
    print(f"{'step':>4}{'ms':>9}{'CPU ms':>9}{'x CPU':>7}" + "".join(f"{p:>9}" for p in PHASES)
          + f"{'sched':>6}{'lower':>6}{'comp':>6}{'kernels':>8}{'MB':>7}")
    for i, r in enumerate(ours):
        print(f"{i:>4}{r['seconds'] * 1e3:>9.1f}{r['cpu'] * 1e3:>9.1f}{r['cpu'] / cpu:>7.1f}"
              + "".join(f"{r['phases'][p] * 1e3:>9.1f}" for p in PHASES)
              + f"{r['schedules']:>6}{r['lowered']:>6}{r['compiled']:>6}{r['kernels']:>8}{r['rss'] >> 20:>7}")


def report():
    for case in CASES:
        table(case)


def main():
    if sys.argv[1] == "--table":
        for case in sys.argv[2:] or CASES:
            table(case)
        return
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    count = int(sys.argv[3]) if len(sys.argv) > 3 else CASES[sys.argv[1]][1]
    print(json.dumps(steps_on(sys.argv[2] if len(sys.argv) > 2 else "weft", sys.argv[1], count)))


if __name__ == "__main__":
    main()
