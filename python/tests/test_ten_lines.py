# SPDX-License-Identifier: MIT
"""What a user writes: torchvision's resnet18, five rounds of FedRolex over ten clients."""
import numpy as np
import pytest

import subfed

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")


def train(tensors, client):
    """Stands for a client's training: adds something of its own to each number of floating type."""
    for tensor in tensors.values():
        tensor.add_(1 if not tensor.is_floating_point() else (client + 1) / 64)


def five_rounds():
    torch.manual_seed(0)
    net = subfed.models.resnet18()
    server = torchvision.models.resnet18()
    for round in range(5):
        updates = []
        for client in range(10):
            sub = subfed.draw(net, subfed.Rolling(), seed=7, round=round, client=client,
                              capacity=[1, 1 / 2, 1 / 4, 1 / 8, 1 / 16][client % 5])
            tensors = subfed.slice(server, sub)
            train(tensors, client)
            updates.append((sub, tensors))
        subfed.average_cohort(net, updates, server)
    return net, server


def test_resnet18_is_described_as_torchvision_has_it():
    for name, blocks in [("resnet18", 8), ("resnet34", 16), ("resnet50", 16)]:
        module = getattr(torchvision.models, name)()
        net = getattr(subfed.models, name)()
        net.check_shapes(module)
        assert {t.name for t in net.tensors if t.role == "counter"} == {
            k for k in module.state_dict() if k.endswith("num_batches_tracked")}
        assert sum(".middle1" in g.name for g in net.groups) == blocks


def test_five_rounds_give_the_numbers_that_plain_indexing_gives():
    net, server = five_rounds()
    torch.manual_seed(0)
    expected = {k: v.numpy().copy() for k, v in torchvision.models.resnet18().state_dict().items()}
    roles = {t.name: t for t in net.tensors}
    for round in range(5):
        sums = {k: np.zeros(v.shape) for k, v in expected.items()}
        weights = {k: np.zeros(v.shape) for k, v in expected.items()}
        for client in range(10):
            capacity = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16][client % 5]
            for name, value in expected.items():
                if roles[name].role == "counter":
                    continue
                nodes = []
                for extent, text in zip(value.shape, roles[name].bound_to.strip("()").split(", ")):
                    if text.rstrip(",").isdigit() or text.startswith("classes"):
                        nodes.append(np.arange(extent))
                    else:
                        kept = max(1, int(extent * capacity))
                        nodes.append((round + np.arange(kept)) % extent)
                at = np.ix_(*nodes)
                trained = value[at] + np.float32((client + 1) / 64)
                sums[name][at] += trained
                weights[name][at] += 1
        for name, value in expected.items():
            held = weights[name] > 0
            value[held] = (sums[name][held] / weights[name][held]).astype(np.float32)
    for name, value in server.state_dict().items():
        assert np.array_equal(value.numpy(), expected[name]), name
    for name, value in server.state_dict().items():
        if name.endswith("num_batches_tracked"):
            assert value == 0  # kept, and never made a float


def test_a_cut_resnet18_runs():
    net, server = five_rounds()
    sub = subfed.draw(net, subfed.Rolling(), round=3, capacity=0.5)


    small = torchvision.models.resnet18()
    for name, module in small.named_modules():
        if isinstance(module, torch.nn.Conv2d):
            out, read = sub.shape(name + ".weight")[:2]
            module.out_channels, module.in_channels = out, read
            module.weight = torch.nn.Parameter(torch.empty(sub.shape(name + ".weight")))
        elif isinstance(module, torch.nn.BatchNorm2d):
            module.__init__(*sub.shape(name + ".weight"))
        elif isinstance(module, torch.nn.Linear):
            module.weight = torch.nn.Parameter(torch.empty(sub.shape(name + ".weight")))
    small.load_state_dict(subfed.slice(server, sub))
    small.eval()
    assert small(torch.randn(2, 3, 64, 64)).shape == (2, 1000)
