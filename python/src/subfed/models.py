# SPDX-License-Identifier: MIT
"""Descriptions of networks under the names that their state_dicts have."""
from ._ext import Model

__all__ = ["mlp", "preresnet18", "resnet", "resnet18", "resnet34", "resnet50", "resnet101"]


def mlp(widths, names=None):
    """Linear layers, widths[i] to widths[i + 1]; the inner widths are groups.

    names: of the layers; without them "fc1", "fc2", ..
    """
    if len(widths) < 2:
        raise ValueError(f"subfed: mlp: {len(widths)} widths, expected an input and an output at least")
    names = names or [f"fc{i + 1}" for i in range(len(widths) - 1)]
    if len(names) != len(widths) - 1:
        raise ValueError(f"subfed: mlp: {len(names)} names for {len(widths) - 1} layers")
    net = Model()
    read = widths[0]
    for i, name in enumerate(names):
        last = i + 1 == len(names)
        written = net.group("classes" if last else f"hidden{i + 1}", widths[i + 1],
                            cut="never" if last else "by_scheme")
        net.linear(name, read, written)
        read = written
    return net


def resnet(blocks, bottleneck, classes=1000, width=64):
    """torchvision.models.ResNet with running statistics and counters: its whole state_dict.

    blocks: in each stage. width: of the stem.
    """
    net = Model()
    expansion = 4 if bottleneck else 1
    stem = net.group("stem", width)
    net.conv2d("conv1", 3, stem, 7, bias=False)
    net.batch_norm("bn1", stem)
    read = stem
    for s, count in enumerate(blocks):
        inner = width << s
        # Without a projection the first block adds to what it reads.
        same = s == 0 and not bottleneck
        stream = stem if same else net.group(f"layer{s + 1}", expansion * inner)
        for b in range(count):
            block = f"layer{s + 1}.{b}"
            middle = net.group(f"{block}.middle1", inner)
            kernels = (1, 3, 1) if bottleneck else (3, 3)
            widths = [read, middle, stream]
            if bottleneck:
                widths.insert(2, net.group(f"{block}.middle2", inner))
            for i, kernel in enumerate(kernels):
                last = net.conv2d(f"{block}.conv{i + 1}", widths[i], widths[i + 1], kernel, bias=False)
                net.batch_norm(f"{block}.bn{i + 1}", widths[i + 1])
            if b == 0 and not same:
                skip = net.conv2d(f"{block}.downsample.0", read, stream, 1, bias=False)
                net.batch_norm(f"{block}.downsample.1", stream)
                net.residual_add(last, skip)
            read = stream
    net.linear("fc", read, net.group("classes", classes, cut="never"))
    return net


def resnet18(classes=1000):
    """torchvision.models.resnet18."""
    return resnet([2, 2, 2, 2], False, classes)


def resnet34(classes=1000):
    """torchvision.models.resnet34."""
    return resnet([3, 4, 6, 3], False, classes)


def resnet50(classes=1000):
    """torchvision.models.resnet50."""
    return resnet([3, 4, 6, 3], True, classes)


def resnet101(classes=1000):
    """torchvision.models.resnet101."""
    return resnet([3, 4, 23, 3], True, classes)


def preresnet18(classes=10):
    """PreResNet18 of the FedRolex paper, without running statistics: 11172170 parameters."""
    net = Model()
    widths = (64, 128, 256, 512)
    stream = net.group("stream1", widths[0])
    net.conv2d("conv1", 3, stream, 3, bias=False)
    for s, width in enumerate(widths):
        read, written = stream, stream if s == 0 else net.group(f"stream{s + 1}", width)
        for b in range(2):
            block = f"layer{s + 1}.{b}"
            inner = net.group(f"{block}.middle", width)
            net.batch_norm(f"{block}.n1", read, track_running_stats=False)
            net.conv2d(f"{block}.conv1", read, inner, 3, bias=False)
            net.batch_norm(f"{block}.n2", inner, track_running_stats=False)
            last = net.conv2d(f"{block}.conv2", inner, written, 3, bias=False)
            if b == 0 and s > 0:
                skip = net.conv2d(f"{block}.shortcut", read, written, 1, bias=False)
                net.residual_add(last, skip)
            read = written
        stream = written
    net.batch_norm("n4", stream, track_running_stats=False)
    net.linear("linear", stream, net.group("classes", classes, cut="never"))
    return net
