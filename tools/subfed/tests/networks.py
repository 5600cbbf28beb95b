# SPDX-License-Identifier: MIT
"""Networks as PyTorch modules, and their ONNX files with every tensor under its own name."""

import copy
import math
import warnings

import torch
import torchvision
from torch import nn

models = torchvision.models


class LeNet(nn.Module):
    """examples/models/lenet.hpp, for Fashion-MNIST"""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        self.conv3 = nn.Conv2d(64, 64, 3)
        self.fc1 = nn.Linear(64 * 2 * 2, 512)
        self.fc2 = nn.Linear(512, 10)

    def forward(self, x):
        for conv in (self.conv1, self.conv2):
            x = nn.functional.max_pool2d(torch.relu(conv(x)), 2)
        x = nn.functional.avg_pool2d(torch.relu(self.conv3(x)), 2, 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


class Vgg9(nn.Module):
    """examples/models/vgg9.hpp"""

    def __init__(self):
        super().__init__()
        widths = (3, 32, 64, 128, 128, 256, 256)
        for i in range(6):
            setattr(self, f"conv{i + 1}", nn.Conv2d(widths[i], widths[i + 1], 3, padding=1))
        self.fc1 = nn.Linear(256, 512)
        self.fc2 = nn.Linear(512, 512)
        self.fc3 = nn.Linear(512, 10)

    def forward(self, x):
        for i in range(6):
            x = torch.relu(getattr(self, f"conv{i + 1}")(x))
            if i % 2 == 1:
                x = nn.functional.max_pool2d(x, 2)
        x = nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


class PreBlock(nn.Module):
    def __init__(self, inside, out, first):
        super().__init__()
        stride = 2 if first else 1
        self.n1 = nn.BatchNorm2d(inside, track_running_stats=False)
        self.conv1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.n2 = nn.BatchNorm2d(out, track_running_stats=False)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        if first:
            self.shortcut = nn.Conv2d(inside, out, 1, stride, bias=False)

    def forward(self, x):
        a = torch.relu(self.n1(x))
        skip = self.shortcut(a) if hasattr(self, "shortcut") else x
        return self.conv2(torch.relu(self.n2(self.conv1(a)))) + skip


class PreResNet18(nn.Module):
    """examples/models/pre_resnet18.hpp"""

    def __init__(self):
        super().__init__()
        widths = (64, 128, 256, 512)
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        inside = 64
        for s, width in enumerate(widths):
            blocks = [PreBlock(inside, width, s > 0), PreBlock(width, width, False)]
            setattr(self, f"layer{s + 1}", nn.Sequential(*blocks))
            inside = width
        self.n4 = nn.BatchNorm2d(512, track_running_stats=False)
        self.linear = nn.Linear(512, 10)

    def forward(self, x):
        x = self.conv1(x)
        for s in range(4):
            x = getattr(self, f"layer{s + 1}")(x)
        x = nn.functional.adaptive_avg_pool2d(torch.relu(self.n4(x)), 1)
        return self.linear(x.flatten(1))


class CharLstm(nn.Module):
    """examples/models/char_lstm.hpp"""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(80, 8)
        self.lstm = nn.LSTM(8, 256, batch_first=True)
        self.decoder = nn.Linear(256, 80)

    def forward(self, x):
        return self.decoder(self.lstm(self.encoder(x))[0])


class Attention(nn.Module):
    """Heads are divided by the width of all heads together, so that sub-networks run."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(width, width))

    def forward(self, x):
        def split(y):
            return y.view(y.size(0), y.size(1), self.heads, -1).transpose(1, 2)

        q, k, v = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        later = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        scores = torch.matmul(q, k.transpose(-2, -1)) * self.scale
        shares = scores.masked_fill(later, -math.inf).softmax(-1)
        return self.o_proj(torch.matmul(shares, v).transpose(1, 2).flatten(2))


class TransformerLayer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1 = nn.LayerNorm(width)
        self.linear1 = nn.Linear(width, hidden)
        self.linear2 = nn.Linear(hidden, width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.linear2(torch.relu(self.linear1(x))))


class Transformer(nn.Module):
    """examples/models/transformer.hpp"""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10001, 128)
        self.positions = nn.Embedding(64, 128)
        self.norm = nn.LayerNorm(128)
        self.layers = nn.ModuleList(TransformerLayer(128, 8, 2048) for _ in range(3))
        self.decoder1 = nn.Linear(128, 128)
        self.decoder_norm = nn.LayerNorm(128)
        self.decoder2 = nn.Linear(128, 10000)

    def forward(self, words):
        x = self.norm(self.embedding(words) + self.positions(torch.arange(words.size(1))))
        for layer in self.layers:
            x = layer(x)
        return self.decoder2(self.decoder_norm(torch.relu(self.decoder1(x))))


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1 = nn.Conv2d(3, width, 3, padding=1)
        self.down2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.middle = nn.Conv2d(2 * width, 4 * width, 3, padding=1)
        self.norm = nn.GroupNorm(4, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.back2 = nn.Conv2d(4 * width, 2 * width, 3, padding=1)
        self.back1 = nn.Conv2d(3 * width, width, 3, padding=1)
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        a = torch.relu(self.down1(x))
        b = torch.relu(self.down2(nn.functional.max_pool2d(a, 2)))
        c = torch.relu(self.norm(self.middle(nn.functional.max_pool2d(b, 2))))
        c = torch.relu(self.back2(torch.cat([self.up2(c), b], 1)))
        c = nn.functional.interpolate(c, scale_factor=2, mode="nearest")
        return self.out(torch.relu(self.back1(torch.cat([c, a], 1))))


class BiGru(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(30, 6)
        self.gru = nn.GRU(6, 10, num_layers=2, bidirectional=True, batch_first=True)
        self.decoder = nn.Linear(20, 5)

    def forward(self, x):
        return self.decoder(self.gru(self.encoder(x))[0].mean(1))


def rotary(x):
    half = x.size(-1) // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    angle = torch.arange(x.size(-2), dtype=x.dtype)[:, None] * torch.ones(1, 1, dtype=x.dtype)
    return x * angle.cos() + turned * angle.sin()


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class RotaryGroupedQuery(nn.Module):
    """Attention of today's language models: rotary positions, fewer key-value heads, gated layers,
    RMS norms, the embedding's weight again at the end."""

    def __init__(self, width=24, heads=4, key_heads=2, head_width=8, hidden=32):
        super().__init__()
        self.heads, self.key_heads, self.head_width = heads, key_heads, head_width
        self.embedding = nn.Embedding(50, width)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q_proj = nn.Linear(width, heads * head_width, bias=False)
        self.k_proj = nn.Linear(width, key_heads * head_width, bias=False)
        self.v_proj = nn.Linear(width, key_heads * head_width, bias=False)
        self.o_proj = nn.Linear(heads * head_width, width, bias=False)
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, words):
        x = self.embedding(words)
        a = self.norm1(x)
        n, steps = words.shape

        def split(y, heads):
            return y.view(n, steps, heads, -1).transpose(1, 2)

        q = rotary(split(self.q_proj(a), self.heads))
        k = rotary(split(self.k_proj(a), self.key_heads))
        v = split(self.v_proj(a), self.key_heads)
        times = self.heads // self.key_heads
        k, v = (
            y[:, :, None].expand(-1, -1, times, -1, -1).reshape(n, self.heads, steps, -1)
            for y in (k, v)
        )
        shares = (q @ k.transpose(-1, -2) / math.sqrt(self.head_width)).softmax(-1)
        x = x + self.o_proj((shares @ v).transpose(1, 2).reshape(n, steps, -1))
        a = self.norm2(x)
        x = x + self.down_proj(nn.functional.silu(self.gate_proj(a)) * self.up_proj(a))
        return nn.functional.linear(x, self.embedding.weight)


class LanguageModel(nn.Module):
    """Layers as RotaryGroupedQuery, with the names that language models' checkpoints have."""

    class Layer(nn.Module):
        def __init__(self, width, heads, key_heads, hidden):
            super().__init__()
            self.heads, self.key_heads, self.head_width = heads, key_heads, width // heads
            self.self_attn = nn.ModuleDict({
                "q_proj": nn.Linear(width, width, bias=False),
                "k_proj": nn.Linear(width, key_heads * self.head_width, bias=False),
                "v_proj": nn.Linear(width, key_heads * self.head_width, bias=False),
                "o_proj": nn.Linear(width, width, bias=False)})
            self.mlp = nn.ModuleDict({
                "gate_proj": nn.Linear(width, hidden, bias=False),
                "up_proj": nn.Linear(width, hidden, bias=False),
                "down_proj": nn.Linear(hidden, width, bias=False)})
            self.input_layernorm = RmsNorm(width)
            self.post_attention_layernorm = RmsNorm(width)

        def forward(self, x):
            n, steps, _ = x.shape
            a = self.input_layernorm(x)

            def split(name, heads):
                return self.self_attn[name](a).view(n, steps, heads, -1).transpose(1, 2)

            q, k = rotary(split("q_proj", self.heads)), rotary(split("k_proj", self.key_heads))
            v = split("v_proj", self.key_heads)
            times = self.heads // self.key_heads
            k, v = (y[:, :, None].expand(-1, -1, times, -1, -1).reshape(n, self.heads, steps, -1)
                    for y in (k, v))
            shares = (q @ k.transpose(-1, -2) / math.sqrt(self.head_width)).softmax(-1)
            x = x + self.self_attn["o_proj"]((shares @ v).transpose(1, 2).reshape(n, steps, -1))
            a = self.post_attention_layernorm(x)
            gated = nn.functional.silu(self.mlp["gate_proj"](a)) * self.mlp["up_proj"](a)
            return x + self.mlp["down_proj"](gated)

    def __init__(self, width=128, heads=8, key_heads=4, hidden=352, layers=3, words=1000):
        super().__init__()
        self.model = nn.ModuleDict({
            "embed_tokens": nn.Embedding(words, width),
            "layers": nn.ModuleList(self.Layer(width, heads, key_heads, hidden) for _ in range(layers)),
            "norm": RmsNorm(width)})
        self.lm_head = nn.Linear(width, words, bias=False)

    def forward(self, words):
        x = self.model["embed_tokens"](words)
        for layer in self.model["layers"]:
            x = layer(x)
        return self.lm_head(self.model["norm"](x))


class Turned(nn.Module):
    """A linear layer whose weight is (in, out), as in GPT-2."""

    def __init__(self, inside, out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inside, out) * 0.1)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x):
        return torch.addmm(self.bias, x.flatten(0, -2), self.weight).view(*x.shape[:-1], -1)


class Gpt2(nn.Module):
    """Fused queries, keys and values, and the embedding's weight again at the end."""

    def __init__(self, width=24, heads=4):
        super().__init__()
        self.heads, self.scale = heads, 1 / math.sqrt(width // heads)
        self.wte, self.wpe = nn.Embedding(50, width), nn.Embedding(16, width)
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = Turned(width, 3 * width), Turned(width, width)
        self.c_fc, self.c_out = Turned(width, 4 * width), Turned(4 * width, width)

    def forward(self, words):
        x = self.wte(words) + self.wpe(torch.arange(words.size(1)))
        n, steps = words.shape
        parts = self.c_attn(self.ln_1(x)).chunk(3, 2)
        q, k, v = (y.view(n, steps, self.heads, -1).permute(0, 2, 1, 3) for y in parts)
        earlier = torch.ones(steps, steps, dtype=torch.bool).tril()
        scores = (q @ k.transpose(-1, -2) * self.scale).masked_fill(~earlier, -1e4)
        y = (scores.softmax(-1) @ v).permute(0, 2, 1, 3).reshape(n, steps, -1)
        x = x + self.c_proj(y)
        x = x + self.c_out(nn.functional.gelu(self.c_fc(self.ln_2(x))))
        return nn.functional.linear(x, self.wte.weight)


class PaddedShortcut(nn.Module):
    """A shortcut that adds channels of zeros on both sides."""

    def __init__(self):
        super().__init__()
        self.conv0 = nn.Conv2d(3, 8, 3, padding=1)
        self.conv1 = nn.Conv2d(8, 16, 3, 2, 1)
        self.norm = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 16, 3, 1, 1)
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        x = torch.relu(self.conv0(x))
        y = self.conv2(torch.relu(self.norm(self.conv1(x))))
        skip = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 4, 4))
        return self.fc((skip + y).mean((2, 3)))


class GroupedSqueeze(nn.Module):
    """Grouped and transposed grouped convolutions, a group norm, a squeeze and excitation."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 12, 3)
        self.grouped = nn.Conv2d(12, 24, 3, padding=1, groups=3)
        self.squeeze, self.excite = nn.Conv2d(24, 4, 1), nn.Conv2d(4, 24, 1)
        self.up = nn.ConvTranspose2d(24, 12, 2, 2, groups=3)
        self.norm = nn.GroupNorm(3, 12)
        self.out = nn.Conv2d(12, 2, 1)

    def forward(self, x):
        x = self.grouped(torch.relu(self.first(x)))
        gate = self.squeeze(nn.functional.adaptive_avg_pool2d(x, 1))
        x = x * torch.sigmoid(self.excite(torch.relu(gate)))
        return self.out(torch.relu(self.norm(self.up(x))))


class SplitConcatenation(nn.Module):
    """Halves that go through layers and are concatenated, pixels made of channels at the end."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3)
        self.a, self.b = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.join, self.wide = nn.Conv2d(32, 6, 1), nn.Conv2d(6, 20, 1)
        self.out = nn.Conv2d(5, 2, 1)

    def forward(self, x):
        y = list(torch.relu(self.first(x)).chunk(2, 1))
        y.append(y[-1] + torch.relu(self.a(y[-1])))
        y.append(torch.relu(self.b(y[-1])))
        x = torch.relu(self.join(torch.cat(y, 1)))
        return self.out(nn.functional.pixel_shuffle(self.wide(x), 2))


class NeighbouringPairs(nn.Module):
    """Rotary positions of neighbouring pairs, attention by einsum."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 12)
        self.q, self.k, self.v = nn.Linear(12, 16), nn.Linear(12, 16), nn.Linear(12, 16)
        self.o, self.fc = nn.Linear(16, 12), nn.Linear(12, 4)

    def rotary(self, x):
        a, b = x[..., ::2], x[..., 1::2]
        angle = torch.arange(x.size(-2), dtype=x.dtype)[:, None]
        c, s = angle.cos(), angle.sin()
        return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)

    def forward(self, words):
        x = self.embedding(words)

        def split(y):
            return y.view(y.size(0), y.size(1), 2, -1).transpose(1, 2)

        q, k, v = self.rotary(split(self.q(x))), self.rotary(split(self.k(x))), split(self.v(x))
        shares = torch.einsum("bhid,bhjd->bhij", q, k).softmax(-1)
        y = torch.einsum("bhij,bhjd->bhid", shares, v)
        return self.fc(x + self.o(y.transpose(1, 2).flatten(2)))


class Mixer(nn.Module):
    """Layers over positions and layers over channels."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 12, 4, 4)
        self.norm1, self.norm2 = nn.LayerNorm(12), nn.LayerNorm(12)
        self.positions1, self.positions2 = nn.Linear(16, 20), nn.Linear(20, 16)
        self.channels1, self.channels2 = nn.Linear(12, 30), nn.Linear(30, 12)
        self.fc = nn.Linear(12, 5)

    def forward(self, x):
        gelu = nn.functional.gelu
        x = self.patches(x).flatten(2).transpose(1, 2)
        turned = self.norm1(x).transpose(1, 2)
        x = x + self.positions2(gelu(self.positions1(turned))).transpose(1, 2)
        x = x + self.channels2(gelu(self.channels1(self.norm2(x))))
        return self.fc(x.mean(1))


class Cells(nn.Module):
    """Recurrent cells step by step."""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.fc = nn.LSTMCell(5, 6), nn.GRUCell(6, 7), nn.Linear(7, 2)

    def forward(self, x):
        h = c = x.new_zeros(x.size(0), self.lstm.hidden_size)
        g = x.new_zeros(x.size(0), self.gru.hidden_size)
        for t in range(x.size(1)):
            h, c = self.lstm(x[:, t], (h, c))
            g = self.gru(h, g)
        return self.fc(g)


class Decoder(nn.Module):
    """PyTorch's decoder layer: attention to itself and to a memory."""

    def __init__(self):
        super().__init__()
        self.target, self.memory = nn.Linear(16, 24), nn.Linear(16, 24)
        self.layer = nn.TransformerDecoderLayer(24, 4, 40, dropout=0.0, batch_first=True)
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        return self.fc(self.layer(self.target(x), self.memory(x)))


def image(side=64, colours=3):
    return torch.rand(2, colours, side, side)


def words(count, steps=7):
    return torch.randint(0, count, (2, steps))


def small_vit():
    return models.VisionTransformer(32, 8, 2, 4, 64, 96, num_classes=10)


def small_swin():
    swin = torchvision.models.swin_transformer.SwinTransformer
    return swin([4, 4], 24, [2, 2], [3, 6], [4, 4], stochastic_depth_prob=0.0, num_classes=10)


def small_convnext():
    setting = torchvision.models.convnext.CNBlockConfig
    net = models.ConvNeXt([setting(16, 32, 2), setting(32, None, 2)], 0.0, 0.5, num_classes=10)
    return net


def plain(name, **options):
    return lambda: getattr(models, name)(weights=None, **options)


# name: the module, its input, whether it is one of the few that every test run takes
NETWORKS = {
    "lenet": (LeNet, lambda: image(28, 1), True),
    "vgg9": (Vgg9, lambda: image(32), True),
    "pre_resnet18": (PreResNet18, lambda: image(32), True),
    "char_lstm": (CharLstm, lambda: words(80), True),
    "transformer": (Transformer, lambda: words(10000), True),
    "resnet50": (plain("resnet50"), image, False),
    "unet": (UNet, lambda: image(16), True),
    "bi_gru": (BiGru, lambda: words(30), True),
    "rotary": (RotaryGroupedQuery, lambda: words(50), True),
    "language_model": (LanguageModel, lambda: words(1000), False),
    "gpt2": (Gpt2, lambda: words(50), True),
    "padded_shortcut": (PaddedShortcut, lambda: image(16), True),
    "grouped_squeeze": (GroupedSqueeze, lambda: image(8), True),
    "split_concatenation": (SplitConcatenation, lambda: image(16), True),
    "neighbouring_pairs": (NeighbouringPairs, lambda: words(20), True),
    "mixer": (Mixer, lambda: image(16), True),
    "cells": (Cells, lambda: torch.rand(2, 4, 5), True),
    "decoder": (Decoder, lambda: torch.rand(2, 5, 16), True),
    "small_vit": (small_vit, lambda: image(32), True),
    "small_swin": (small_swin, lambda: image(32), True),
    "small_convnext": (small_convnext, lambda: image(32), True),
    "resnet18": (plain("resnet18"), lambda: image(32), True),
    "mobilenet_v2": (plain("mobilenet_v2"), lambda: image(32), True),
    "shufflenet_v2": (plain("shufflenet_v2_x0_5"), lambda: image(32), True),
    "small_densenet": (lambda: models.DenseNet(8, (2, 2, 2), 16, num_classes=10), lambda: image(32), True),
    "densenet121": (plain("densenet121"), image, False),
    "googlenet": (plain("googlenet", init_weights=False, aux_logits=False), image, False),
    "inception_v3": (
        plain("inception_v3", init_weights=False, aux_logits=False),
        lambda: image(96),
        False,
    ),
    "resnext50": (plain("resnext50_32x4d"), image, False),
    "mobilenet_v3": (plain("mobilenet_v3_small"), image, False),
    "efficientnet_b0": (plain("efficientnet_b0"), image, False),
    "regnet_y_400mf": (plain("regnet_y_400mf"), image, False),
    "mnasnet": (plain("mnasnet0_5"), image, False),
    "squeezenet": (plain("squeezenet1_0"), image, False),
    "vgg11_bn": (plain("vgg11_bn"), lambda: image(224), False),
    "convnext_tiny": (plain("convnext_tiny"), image, False),
    "vit_b_16": (plain("vit_b_16"), lambda: image(224), False),
    "swin_t": (plain("swin_t"), lambda: image(64), False),
    "deeplab": (
        lambda: models.segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None),
        image,
        False,
    ),
}


def make(name):
    """The module in evaluation mode, and an input."""
    make_module, make_input, _ = NETWORKS[name]
    torch.manual_seed(7)
    net = make_module()
    for module in net.modules():
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0  # a random number that does not export
    return net.eval(), make_input()


def export(net, x, file, opset=14):
    """With every parameter and buffer under its own name. That runs the network in training mode,
    which changes running statistics: a copy is exported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            copy.deepcopy(net).train(),
            x,
            file,
            training=torch.onnx.TrainingMode.TRAINING,
            do_constant_folding=False,
            opset_version=opset,
        )
