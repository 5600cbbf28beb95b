# SPDX-License-Identifier: MIT
"""What a user writes: torchvision's resnet18, five rounds of FedRolex over ten clients."""
import pathlib

import numpy as np
import pytest

import subfed

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")


DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


@pytest.fixture(scope="module")
def trained():
    """The description and the server behind the program in the documentation. What stands for a client's training
    adds something of its own to each number of floating type."""
    program = {}

    def train(tensors):
        for tensor in tensors.values():
            tensor.add_(1 if not tensor.is_floating_point() else (program["client"] + 1) / 64)

    program["train"] = train
    torch.manual_seed(0)
    exec(DOCS.read_text().split("```python\n")[1].split("```")[0], program)
    return program["net"], program["server"]


def test_resnet18_is_described_as_torchvision_has_it():
    for name, blocks in [("resnet18", 8), ("resnet34", 16), ("resnet50", 16)]:
        module = getattr(torchvision.models, name)()
        net = getattr(subfed.models, name)()
        net.check_shapes(module)
        assert {t.name for t in net.tensors if t.role == "counter"} == {
            k for k in module.state_dict() if k.endswith("num_batches_tracked")}
        assert sum(".middle1" in g.name for g in net.groups) == blocks


def rolled(tensors, groups, round, back=False):
    """The tensors with their windows' first nodes in front, or in their own order again."""
    out = {}
    for name, value in tensors.items():
        axes = [axis for axis, bound in enumerate(groups[name]) if bound]
        out[name] = torch.roll(value, [round if back else -round] * len(axes), axes) if axes else value
    return out


def test_five_rounds_give_the_numbers_that_plain_indexing_gives(trained):
    net, server = trained
    torch.manual_seed(0)
    groups = {t.name: [not (text.isdigit() or text == "classes")
                       for text in t.bound_to.strip("(),").split(", ")] for t in net.tensors if t.shape}
    expected = {k: v for k, v in torchvision.models.resnet18().state_dict().items() if k in groups}
    for round in range(5):
        expected = rolled(expected, groups, round)
        sums = {k: torch.zeros(v.shape, dtype=torch.float64) for k, v in expected.items()}
        counts = {k: torch.zeros(v.shape) for k, v in expected.items()}
        for client in range(10):
            capacity = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16][client % 5]
            for name, value in expected.items():
                at = tuple(np.s_[:max(1, int(e * capacity))] if bound else np.s_[:]
                           for e, bound in zip(value.shape, groups[name]))
                sums[name][at] += value[at] + (client + 1) / 64
                counts[name][at] += 1
        # Prefixes of the full client's tensors: each element has a holder.
        expected = rolled({k: (sums[k] / counts[k]).float() for k in expected}, groups, round, back=True)
    for name, value in server.state_dict().items():
        if name.endswith("num_batches_tracked"):
            assert value == 0  # kept, and never made a float
        else:
            assert torch.equal(value, expected[name]), name


def test_a_cut_resnet18_runs(trained):
    net, server = trained
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
