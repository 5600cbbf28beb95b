#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rolling, static and random sub-networks once more, in PyTorch, with nothing of subfed: what the study's
trainer must agree with in the mean over seeds. Written from the papers' equations and the trainer's
documented setting (docs/methods.md); other random numbers, so single runs differ.

  independent.py --method rolling|static|random [--labels L] [--seeds 1,2,3] [--rounds 192] [--lr 0.05]
                 [--capacities 1,1/2,1/4,1/8,1/16] [--data FOLDER] [--csv FILE]

prints the global accuracy of each seed in percent, then mean and standard deviation. --csv also puts
them into a file such as independent.csv, in place of those of the same labels, scheme and seed; that
file has the default setting, each with
`independent.py --method M --labels L --seeds S --csv tools/study/independent.csv`.
"""

import argparse
import csv
import fractions
import gzip
import math
import pathlib
import statistics
import sys

try:
    import torch
    from torch.nn import functional as F
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

CLIENTS, COHORT, SAMPLES, BATCH, CLASSES = 100, 10, 64, 16, 10
WIDTHS = {"stream1": 32, "inner1": 32, "stream2": 64, "inner2": 64}
# Name: shape, in which numbers and groups stand; groups are cut.
TENSORS = {
    "stem": ("stream1", 1, 5, 5),
    "n1.weight": ("stream1",), "n1.bias": ("stream1",),
    "conv1": ("inner1", "stream1", 3, 3),
    "n2.weight": ("inner1",), "n2.bias": ("inner1",),
    "conv2": ("stream1", "inner1", 3, 3),  # its result is added to the stem's
    "n3.weight": ("stream1",), "n3.bias": ("stream1",),
    "conv3": ("inner2", "stream1", 3, 3),
    "n4.weight": ("inner2",), "n4.bias": ("inner2",),
    "conv4": ("stream2", "inner2", 3, 3),
    "shortcut": ("stream2", "stream1", 1, 1),
    "n5.weight": ("stream2",), "n5.bias": ("stream2",),
    "head.weight": (CLASSES, "stream2"), "head.bias": (CLASSES,),
}


def start(generator):
    out = {}
    for name, dims in TENSORS.items():
        shape = [WIDTHS.get(d, d) for d in dims]
        if len(shape) == 1:
            out[name] = (torch.ones if name.endswith("weight") else torch.zeros)(shape)
        else:
            bound = math.sqrt(6 / math.prod(shape[1:]))
            out[name] = bound * (2 * torch.rand(shape, generator=generator) - 1)
    return out


def forward(p, x, scale=1.0, moments=None, measured=None):
    """Logits. Batches are normalised by their own moments, or by `moments`; `measured` collects them."""

    def norm(name, h):
        weight, bias = p[name + ".weight"], p[name + ".bias"]
        if moments is not None:
            return F.batch_norm(h, *moments[name], weight, bias, False)
        if measured is not None:
            measured.setdefault(name, []).append(
                (h.mean((0, 2, 3)), h.var((0, 2, 3), unbiased=True)))
        return F.batch_norm(h, None, None, weight, bias, True)

    def conv(name, h, stride=1):
        return scale * F.conv2d(h, p[name], None, stride, p[name].shape[2] // 2)

    x = conv("stem", x, 4)
    a = F.relu(norm("n1", x))
    x = x + conv("conv2", F.relu(norm("n2", conv("conv1", a))))
    a = F.relu(norm("n3", x))
    x = conv("shortcut", a, 2) + conv("conv4", F.relu(norm("n4", conv("conv3", a, 2))))
    return F.linear(F.relu(norm("n5", x)).mean((2, 3)), p["head.weight"], p["head.bias"])


def nodes(method, round_, capacity, generator):
    """The node numbers of each group. [Rolex, Eq. 4 to 6]"""
    out = {}
    for group, extent in WIDTHS.items():
        held = max(1, math.floor(capacity * extent))
        if method == "rolling":
            out[group] = torch.tensor([(round_ + i) % extent for i in range(held)])
        elif method == "static":
            out[group] = torch.arange(held)
        else:
            out[group] = torch.randperm(extent, generator=generator)[:held]
    return out


def mesh(dims, chosen, rows=None):
    """Indices of a tensor's cut dimensions, to be broadcast."""
    out = []
    for place, d in enumerate(dims):
        if d in chosen:
            index = chosen[d]
        else:
            index = rows if d == CLASSES and rows is not None else torch.arange(d)
        out.append(index.view([-1] + [1] * (len(dims) - place - 1)))
    return tuple(out)


def images(data, which):
    return (data[0][which].float() - 72.94) / 90.02


def load(folder, prefix):
    def raw(kind):
        with gzip.open(pathlib.Path(folder, f"{prefix}-{kind}-ubyte.gz")) as file:
            return file.read()

    labels = torch.frombuffer(bytearray(raw("labels-idx1")[8:]), dtype=torch.uint8).long()
    pixels = torch.frombuffer(bytearray(raw("images-idx3")[16:]), dtype=torch.uint8)
    return pixels.view(-1, 1, 28, 28), labels


def deal(labels, each, generator):
    """For every client the numbers of its images, from `each` labels, 64 in all."""
    taken = [0] * CLASSES
    own = []
    for _ in range(CLIENTS):
        order = torch.randperm(CLASSES, generator=generator).tolist()
        own.append(sorted(sorted(order, key=lambda k: taken[k])[:each]))
        for k in own[-1]:
            taken[k] += 1
    out = [[] for _ in range(CLIENTS)]
    for k in range(CLASSES):
        numbers = (labels == k).nonzero().flatten()
        numbers = numbers[torch.randperm(len(numbers), generator=generator)].tolist()
        for c in range(CLIENTS):
            if k in own[c]:
                place = own[c].index(k)
                wanted = SAMPLES // each + (place < SAMPLES % each)
                out[c] += numbers[:wanted]
                numbers = numbers[wanted:]
    return own, out


def run(options, seed, train, test):
    g = torch.Generator().manual_seed(seed)
    server = start(g)
    labels, samples = deal(train[1], options.labels, g)
    classes = [float(fractions.Fraction(c)) for c in options.capacities.split(",")]
    capacity = [classes[c % len(classes)] for c in torch.randperm(CLIENTS, generator=g).tolist()]
    for round_ in range(options.rounds):
        lr = options.lr * 0.1 ** sum(round_ >= at * options.rounds for at in (0.5, 0.75))
        sums = {name: torch.zeros_like(t) for name, t in server.items()}
        counts = {name: torch.zeros_like(t) for name, t in server.items()}
        for c in torch.randperm(CLIENTS, generator=g)[:COHORT].tolist():
            chosen = nodes(options.method, round_, capacity[c], g)
            local = {name: server[name][mesh(dims, chosen)].clone().requires_grad_()
                     for name, dims in TENSORS.items()}
            optimiser = torch.optim.SGD(local.values(), lr, momentum=0.9, weight_decay=5e-4)
            absent = torch.ones(CLASSES, dtype=torch.bool)
            absent[labels[c]] = False
            scale = WIDTHS["stream2"] / len(chosen["stream2"])
            order = torch.tensor(samples[c])[torch.randperm(len(samples[c]), generator=g)]
            for batch in order.split(BATCH):
                logits = forward(local, images(train, batch), scale).masked_fill(absent, 0)
                optimiser.zero_grad()
                F.cross_entropy(logits, train[1][batch]).backward()
                optimiser.step()
            rows = torch.tensor(labels[c])  # of the head, a client changes those of its labels
            for name, dims in TENSORS.items():
                where = mesh(dims, chosen, rows)
                own = local[name].detach()
                sums[name][where] += own[rows] if dims[0] == CLASSES else own
                counts[name][where] += 1
        for name in server:
            held = counts[name] > 0
            server[name][held] = sums[name][held] / counts[name][held]
    return accuracy(server, samples, train, test)


def accuracy(server, samples, train, test):
    """Static batch norm: moments of 25 images of every client, in batches of 250. [HeteroFL]"""
    with torch.no_grad():
        picked = torch.tensor([own[i * len(own) // 25] for i in range(25) for own in samples])
        seen = {}
        for batch in picked.split(250):
            forward(server, images(train, batch), measured=seen)
        moments = {name: tuple(torch.stack(part).mean(0) for part in zip(*pairs))
                   for name, pairs in seen.items()}
        right = sum((forward(server, images(test, batch), moments=moments).argmax(1)
                     == test[1][batch]).sum().item()
                    for batch in torch.arange(len(test[1])).split(1000))
    return 100 * right / len(test[1])


def store(path, rows):
    """Rows of (labels, scheme, seed, accuracy)."""
    path = pathlib.Path(path)
    known = {}
    if path.exists():
        with open(path, encoding="utf-8", newline="") as file:
            known = {tuple(row[:3]): row for row in list(csv.reader(file))[1:]}
    known |= {tuple(row[:3]): row for row in rows}
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["labels", "scheme", "seed", "accuracy"])
        out.writerows(known[key]
                      for key in sorted(known, key=lambda k: (int(k[0]), k[1], int(k[2]))))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--method", required=True, choices=("rolling", "static", "random"))
    parser.add_argument("--labels", type=int, default=2)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--rounds", type=int, default=192)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--capacities", default="1,1/2,1/4,1/8,1/16")
    parser.add_argument("--csv")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    options = parser.parse_args()
    if not pathlib.Path(options.data, "train-images-idx3-ubyte.gz").exists():
        print(f"skipped: there is no Fashion-MNIST in {options.data}")
        sys.exit(77)
    torch.set_num_threads(1)
    train, test = load(options.data, "train"), load(options.data, "t10k")
    seen = []
    for seed in options.seeds.split(","):
        seen.append(run(options, int(seed), train, test))
        print(f"seed {seed}: {seen[-1]:.2f}", flush=True)
    if options.csv:
        store(options.csv, [[str(options.labels), options.method, seed, f"{accuracy:.2f}"]
                            for seed, accuracy in zip(options.seeds.split(","), seen)])
    spread = statistics.stdev(seen) if len(seen) > 1 else 0
    print(f"{options.method}, {options.labels} labels, {len(seen)} seeds: "
          f"{statistics.mean(seen):.2f} ({spread:.2f})")


if __name__ == "__main__":
    main()
