# SPDX-License-Identifier: MIT
"""FedRolex on Fashion-MNIST with torch: a whole federated run.

python3 fashion_mnist.py [--rounds 20] [--scheme rolling|random|prefix] [--data FOLDER]
"""
import argparse
import gzip
import pathlib

import numpy as np
import torch
from torch import nn

import subfed

SCHEMES = {"rolling": subfed.Rolling(), "random": subfed.RandomSubset(), "prefix": subfed.Prefix()}
CAPACITIES = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16]


def load(folder, prefix):
    def read(kind, offset):
        with gzip.open(pathlib.Path(folder) / f"{prefix}-{kind}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=offset)

    images = torch.from_numpy(read("images-idx3", 16).reshape(-1, 1, 28, 28).astype(np.float32) / 255 - 0.5)
    return images, torch.from_numpy(read("labels-idx1", 8).astype(np.int64))


def describe():
    """Which tensors are tied: channels of one layer are those that the next one reads."""
    net = subfed.Model()
    first, second, hidden = net.group("first", 16), net.group("second", 32), net.group("hidden", 64)
    net.conv2d("0", 1, first, 5)
    net.conv2d("3", first, second, 5)
    net.linear("7", subfed.flatten(second, 16), hidden)
    net.linear("9", hidden, net.group("classes", 10, cut="never"))
    return net


def network(sub):
    """The network of a client: as wide as its tensors are."""
    first, second, hidden = (sub.extent(g) for g in ("first", "second", "hidden"))
    return nn.Sequential(
        nn.Conv2d(1, first, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(first, second, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * second, hidden), nn.ReLU(), nn.Linear(hidden, 10))


def train(model, images, labels):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for at in torch.randperm(len(labels)).split(32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images[at]), labels[at]).backward()
        optimizer.step()


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--scheme", choices=SCHEMES, default="rolling")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    given = parser.parse_args(argv)
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    images, labels = load(given.data, "train")
    test_images, test_labels = load(given.data, "t10k")
    shards = torch.randperm(len(labels)).view(100, -1)           # of 100 clients

    net = describe()
    net.check_shapes(server := network(subfed.Submodel.full(net)))
    seen, accuracy = subfed.Coverage(net), 0.0
    for round in range(given.rounds):
        updates = []
        for client in torch.randperm(100)[:10].tolist():
            sub = subfed.draw(net, SCHEMES[given.scheme], seed=7, round=round, client=client,
                              capacity=CAPACITIES[client % 5])
            model = network(sub)
            model.load_state_dict(subfed.slice(server, sub))
            train(model, images[shards[client]], labels[shards[client]])
            updates.append((sub, model))
            seen.record(sub)
        subfed.average_cohort(net, updates, server)
        seen.end_round()
        with torch.no_grad():
            accuracy = (server(test_images).argmax(1) == test_labels).float().mean().item()
        print(f"round {round + 1:3d}  accuracy {accuracy:.4f}", flush=True)
    print(seen)
    return accuracy


if __name__ == "__main__":
    main()
