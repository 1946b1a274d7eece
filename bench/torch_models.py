"""GPT-2 and ResNet-18 as their users write them in torch.nn: what bench/torch_device.py trains."""
import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, dim=2))
        heard = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(heard.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, words=50257, places=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(places, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.wte.weight.t()

    @staticmethod
    def loss(logits, ids):
        return functional.cross_entropy(logits.flatten(0, 1), ids.flatten())


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else \
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        straight = self.shortcut(x)
        return functional.relu(self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x))))) + straight)


class ResNet(nn.Module):
    def __init__(self, channels=64, classes=1000, blocks=2):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(channels)
        layers, inputs = [], channels
        for i in range(4):
            outputs = channels << i
            layers += [ResidualBlock(inputs if j == 0 else outputs, outputs, 2 if i > 0 and j == 0 else 1)
                       for j in range(blocks)]
            inputs = outputs
        self.layers, self.fc = nn.Sequential(*layers), nn.Linear(inputs, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, stride=2, padding=1)
        return self.fc(self.layers(x).mean((2, 3)))

    @staticmethod
    def loss(logits, classes):
        return functional.cross_entropy(logits, classes)


def make_gpt2(layers=12, length=128, **sizes):
    model = GPT2(layers, **sizes)
    ids = torch.randint(0, model.wte.num_embeddings, (1, length))
    return model, lambda parameters: torch.optim.Adam(parameters, lr=1e-4), ids, ids


def make_resnet18(batch=1, size=224, **sizes):
    model = ResNet(**sizes)
    return model, lambda parameters: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9), \
        torch.randn(batch, 3, size, size), torch.randint(0, model.fc.out_features, (batch,))


def make_transformer(layers=2, length=64, width=128, heads=4, words=1000):
    return make_gpt2(layers, length, width=width, heads=heads, words=words, places=length)


MODELS = {"gpt2": make_gpt2, "resnet18": make_resnet18, "transformer": make_transformer}


class Training:
    """A model in training on a device."""

    def __init__(self, model, device, compiled=None, **sizes):
        torch.manual_seed(0)
        self.model, optimizer, x, wanted = MODELS[model](**sizes)
        self.model.to(device)
        self.optimizer = optimizer(self.model.parameters())
        self.x, self.wanted = x.to(device), wanted.to(device)
        self.forward = torch.compile(self.model, backend=compiled) if compiled else self.model

    def step(self):
        self.optimizer.zero_grad()
        loss = self.model.loss(self.forward(self.x), self.wanted)
        loss.backward()
        self.optimizer.step()
        return loss
