# SPDX-License-Identifier: MIT
"""The examples: strategies against the stand-in of Flower, the run on Fashion-MNIST, the picture."""
import gzip
import importlib
import pathlib
import sys
import types

import numpy as np
import pytest

import flower_standin
import subfed

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
NET = subfed.models.mlp([4, 6, 2])
NODES = [3, 2**63 + 5, 2**64 - 1]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    if importlib.util.find_spec("flwr") is None:
        before = set(sys.modules)
        flower_standin.install()
        yield
        for name in set(sys.modules) - before:
            if name.split(".")[0] in ("flwr", "flower_strategies", "flower_strategies_fit"):
                del sys.modules[name]
    else:
        pytest.skip("this is a test against the stand-in, and Flower itself is installed")


def capacity_of(node):
    return {3: 1.0, 2**63 + 5: 0.5, 2**64 - 1: 0.5}[node]


def arrays(value):
    return {t.name: np.full(t.shape, value, np.float32) for t in NET.tensors}


def trained(node, array):
    return array + np.float32(NODES.index(node) + 1)


def replies_of(messages, flwr, order=reversed):
    out = []
    for m in messages:
        node = m.metadata.dst_node_id
        content = m.content["arrays"]
        out.append(flwr.Message(flwr.RecordDict(
            arrays=flwr.ArrayRecord({k: flwr.Array(trained(node, content[k].numpy()))
                                     for k in order(list(content))}),
            metrics=flwr.MetricRecord({"num-examples": 10, "loss": 0.5})), src_node_id=node))
    return out


@pytest.mark.parametrize("name, scheme", [("FedRolex", subfed.Rolling()), ("HeteroFL", subfed.Prefix())])
def test_strategies_of_the_present_form(name, scheme):
    import flwr.common as flwr
    strategy = getattr(importlib.import_module("flower_strategies"), name)(NET, capacity_of, seed=5)
    grid = types.SimpleNamespace(get_node_ids=lambda: NODES)
    server, expected = arrays(0), arrays(0)
    for round in (1, 2):
        record = flwr.ArrayRecord({k: flwr.Array(v) for k, v in server.items()})
        messages = list(strategy.configure_train(round, record, flwr.ConfigRecord(lr=0.1), grid))
        assert [m.metadata.dst_node_id for m in messages] == NODES
        assert messages[1].content["arrays"]["fc1.weight"].shape == (3, 4)
        assert messages[1].content["config"] == {"lr": 0.1, "server-round": round}
        replies = replies_of(messages, flwr)
        replies.insert(1, flwr.Message(error=types.SimpleNamespace(reason="lost"), src_node_id=9))
        record, metrics = strategy.aggregate_train(round, replies)
        server = {k: a.numpy() for k, a in record.items()}
        assert metrics == {"loss": 0.5}
        updates = []
        for node in NODES:
            sub = subfed.draw(NET, scheme, seed=5, round=round, client=node, capacity=capacity_of(node))
            updates.append((sub, {k: trained(node, v) for k, v in subfed.slice(expected, sub).items()}))
        subfed.average_cohort(NET, updates, expected)
        for k in expected:
            assert np.array_equal(server[k], expected[k])
    assert strategy.aggregate_train(3, []) == (None, None)
    assert strategy.parts.coverage.rounds == 2


def test_a_reply_of_extent_1_is_refused_rather_than_spread():
    import flwr.common as flwr
    strategy = importlib.import_module("flower_strategies").FedRolex(NET, capacity_of)
    grid = types.SimpleNamespace(get_node_ids=lambda: NODES)
    record = flwr.ArrayRecord({k: flwr.Array(v) for k, v in arrays(0).items()})
    replies = replies_of(strategy.configure_train(1, record, flwr.ConfigRecord(), grid), flwr)
    replies[2].content["arrays"]["fc1.bias"] = flwr.Array(np.full(1, 5, np.float32))
    with pytest.raises(subfed.Error, match=r"'fc1.bias'.*\(1,\)") as caught:
        strategy.aggregate_train(1, replies)
    assert (caught.value.tensor, caught.value.client) == ("fc1.bias", 2**64 - 1)
    replies[2].content["arrays"]["fc1.bias"] = flwr.Array(np.full(3, 5, np.float32))
    replies[2].metadata.src_node_id = 77
    with pytest.raises(subfed.Error, match="client 77 replies, but was sent nothing"):
        strategy.aggregate_train(1, replies)


@pytest.mark.parametrize("name, scheme", [("FedRolex", subfed.Rolling()), ("HeteroFL", subfed.Prefix())])
def test_strategies_of_the_older_form(name, scheme):
    import flwr.common as flwr
    strategy = getattr(importlib.import_module("flower_strategies_fit"), name)(NET, capacity_of, seed=5)
    clients = {str(n): types.SimpleNamespace(cid=str(n)) for n in NODES}
    manager = types.SimpleNamespace(all=lambda: clients)
    parameters = flwr.ndarrays_to_parameters(arrays(2).values())
    asked = strategy.configure_fit(4, parameters, manager)
    results, updates, expected = [], [], arrays(2)
    for client, fit in asked:
        node = int(client.cid)
        assert fit.config == {"round": 4}
        back = [trained(node, a) for a in flwr.parameters_to_ndarrays(fit.parameters)]
        results.append((client, flwr.FitRes(flwr.ndarrays_to_parameters(back), 10, {})))
        sub = subfed.draw(NET, scheme, seed=5, round=4, client=node, capacity=capacity_of(node))
        updates.append((sub, {k: trained(node, v) for k, v in subfed.slice(expected, sub).items()}))
    averaged, metrics = strategy.aggregate_fit(4, results[::-1], [])
    subfed.average_cohort(NET, updates, expected)
    for got, want in zip(flwr.parameters_to_ndarrays(averaged), expected.values()):
        assert np.array_equal(got, want)
    assert metrics == {} and strategy.aggregate_fit(5, [], []) == (None, {})


def part_of_the_data(to):
    """A quarter of the images and labels. The number in front of them stays as it was, and nobody asks it."""
    for name in ("images-idx3", "labels-idx1"):
        for prefix in ("train", "t10k"):
            with gzip.open(DATA / f"{prefix}-{name}-ubyte.gz") as file:
                data = file.read()
            header = len(data) % 1000
            data = data[:header + (len(data) - header) // 4]
            with gzip.open(to / f"{prefix}-{name}-ubyte.gz", "wb", compresslevel=0) as file:
                file.write(data)


@pytest.mark.skipif(not DATA.exists(), reason="Fashion-MNIST is not installed")
def test_the_run_on_fashion_mnist_learns_and_is_the_same_each_time(tmp_path, capsys):
    pytest.importorskip("torch")
    part_of_the_data(tmp_path)
    example = importlib.import_module("fashion_mnist")
    assert example.main(["--rounds", "4", "--data", str(tmp_path)]) > 0.3
    first = capsys.readouterr().out.splitlines()
    assert first[3].startswith("round   4  accuracy")
    example.main(["--rounds", "2", "--data", str(tmp_path)])
    assert capsys.readouterr().out.splitlines()[:2] == first[:2]


def test_the_picture_of_coverage(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    importlib.import_module("coverage_picture").main(str(tmp_path / "picture.png"), rounds=5)
    assert (tmp_path / "picture.png").stat().st_size > 10000
    assert "prefix (HeteroFL)" in capsys.readouterr().out
