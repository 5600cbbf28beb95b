# SPDX-License-Identifier: MIT
"""Models and submodels: description, words, bytes."""
import copy
import fractions
import json
import pathlib
import pickle

import numpy as np
import pytest

import subfed


def described():
    net = subfed.Model()
    hidden = net.group("hidden", 6)
    net.conv2d("conv", 3, hidden, 3, bias=False)
    net.batch_norm("bn", hidden)
    net.linear("fc", subfed.flatten(hidden, 4), net.group("classes", 2, cut="never"))
    return net


def test_layers_have_the_names_and_shapes_of_torch():
    torch = pytest.importorskip("torch")
    nn = torch.nn
    net = subfed.Model()
    g, h, e = net.group("g", 8), net.group("h", 4), net.group("e", 6)
    heads = h.repeat(2)
    layers = {}

    def add(name, module, describe, *args, **named):
        layers[name] = module
        describe(name, *args, **named)

    add("linear", nn.Linear(3, 8), net.linear, 3, g)
    add("bare", nn.Linear(3, 8, bias=False), net.linear, 3, g, bias=False)
    add("c1", nn.Conv1d(3, 8, 5), net.conv1d, 3, g, 5)
    add("c2", nn.Conv2d(8, 8, (3, 5), groups=8), net.conv2d, g, g, (3, 5), groups=8)
    add("c3", nn.Conv3d(3, 8, (1, 2, 3)), net.conv3d, 3, "g", (1, 2, 3))
    add("t1", nn.ConvTranspose1d(3, 8, 5), net.conv_transpose1d, 3, g, 5)
    add("t2", nn.ConvTranspose2d(8, 4, 2), net.conv_transpose2d, g, h, 2)
    add("t3", nn.ConvTranspose3d(8, 4, 2), net.conv_transpose3d, g, h, 2)
    add("bn", nn.BatchNorm2d(8), net.batch_norm, g)
    add("bn_plain", nn.BatchNorm2d(8, affine=False, track_running_stats=True), net.batch_norm, g,
        affine=False)
    add("ln", nn.LayerNorm((8, 4)), net.layer_norm, (g, h))
    add("gn", nn.GroupNorm(2, 8), net.group_norm, 2, h.repeat(2))
    add("words", nn.Embedding(20, 8), net.embedding, 20, g)
    add("lstm", nn.LSTM(3, 6, 2, bidirectional=True), net.lstm, 3, (e, e), reverse=(e, e))
    add("gru", nn.GRU(3, 6, bias=False), net.gru, 3, [e], bias=False)
    add("rnn", nn.RNN(3, 6), net.rnn, 3, ("e",))
    add("mha", nn.MultiheadAttention(8, 2), net.multihead_attention, heads, heads, 2)
    net.check_shapes(nn.ModuleDict(layers))


def test_layer_helpers_say_what_they_described():
    net = subfed.Model()
    fc = net.linear("fc", 3, net.group("g", 4))
    assert (fc.weight, fc.bias) == (net.find_tensor("fc.weight"), net.find_tensor("fc.bias"))
    assert net.linear("bare", 3, "g", bias=False).bias is None
    words = net.embedding("words", 20, "g")
    assert net.linear_tied("out", words, "g", 20).weight == words
    other = net.linear("other", 3, net.group("h", 4))
    with pytest.raises(subfed.Error, match="'fc.weight' writes .* 'other.weight'"):
        net.residual_add(fc.weight, other.weight)
    assert net.extent(net.residual_add("fc.weight", "bare.weight")) == 4
    assert net.residual_add(fc, "bare.weight") == net.residual_add(fc.weight)
    net.attention("attn", 8, 8, net.group("node", 4), 4, num_key_value_heads=2)
    assert [t.shape for t in net.tensors if t.name.endswith("proj.weight")] == [
        (16, 8), (8, 8), (8, 8), (8, 16)]


def test_what_a_model_says_about_itself():
    net = described()
    assert [(g.name, g.extent, g.cut) for g in net.groups] == [
        ("hidden", 6, "by_scheme"), ("classes", 2, "never")]
    conv = net.tensors[0]
    assert (conv.name, conv.shape, conv.role, conv.bound_to) == (
        "conv.weight", (6, 3, 3, 3), "parameter", "(hidden, 3, 3, 3)")
    assert {t.name: t.role for t in net.tensors}["bn.num_batches_tracked"] == "counter"
    assert net.size == 6 * 27 + 24 + 1 + 48 + 2
    assert "fc.weight" in str(net) and "hidden" in net.to_dot()
    assert repr(net) == "<subfed.Model: 2 groups, 8 tensors, 237 elements>"
    assert repr(conv) == "Tensor('conv.weight', (6, 3, 3, 3) = (hidden, 3, 3, 3))"
    assert repr(net.groups[1]) == "Group('classes', 2, cut='never')"
    assert "<table>" in net._repr_html_() and "bn.running_var" in net._repr_html_()


def test_html_escapes_names():
    net = subfed.Model()
    net.linear("<b>", 2, net.group("<i>&", 3))
    sub, seen = subfed.draw(net, subfed.Prefix(), capacity=0.5), subfed.Coverage(net)
    seen.record(sub)
    seen.end_round()
    for shown in (net, sub, seen):
        html = shown._repr_html_()
        assert "&lt;i&gt;&amp;" in html and "<i>" not in html and "<b>" not in html


def test_wrong_descriptions_are_refused_and_change_nothing():
    net = described()
    before = str(net)
    for wrong in (lambda: net.group("hidden", 3), lambda: net.group("x", -1), lambda: net.group("", 1),
                  lambda: net.tensor("fc.weight", [1]), lambda: net.tensor("t", [1] * 9),
                  lambda: net.tensor("t", ["nobody"]), lambda: net.tensor("t", [2], role="weight"),
                  lambda: net.group("x", 1, cut="maybe"), lambda: net.mark("nobody", "local"),
                  lambda: net.mark(lambda t: False, "local"), lambda: net.conv2d("c", 3, 4, (3, 3, 3))):
        with pytest.raises(subfed.Error):
            wrong()
    for wrong in (lambda: net.tensor("t", [1.5]), lambda: net.tensor("t", [None]),
                  lambda: net.linear("l", [], 3)):
        with pytest.raises(TypeError):
            wrong()
    assert str(net) == before


def test_check_shapes_names_what_is_wrong():
    net = described()
    good = {t.name: np.zeros(t.shape) for t in net.tensors}
    net.check_shapes(dict(reversed(list(good.items()))))
    with pytest.raises(subfed.Error, match="'bn.bias' is missing"):
        net.check_shapes({k: v for k, v in good.items() if k != "bn.bias"})
    with pytest.raises(subfed.Error, match=r"'fc.weight' has shape \(2, 6\)"):
        net.check_shapes({**good, "fc.weight": np.zeros((2, 6))})
    with pytest.raises(subfed.Error, match="'more'"):
        net.check_shapes({**good, "more": np.zeros(1)})


def test_roles_are_given_by_name_list_or_predicate():
    net = described()
    net.mark("fc.bias", "local").mark(["bn.weight", net.find_tensor("bn.bias")], "statistic")
    net.mark(lambda t: t.shape == (), "parameter")
    roles = {t.name: t.role for t in net.tensors}
    assert (roles["fc.bias"], roles["bn.weight"], roles["bn.bias"]) == ("local", "statistic", "statistic")
    assert roles["bn.num_batches_tracked"] == "parameter"


def test_models_are_values():
    net = described()
    sub = subfed.Submodel.full(net)
    for other in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other == net and str(other) == str(net)
        other.group("more", 3)
        assert other != net
    net.group("late", 2)
    assert sub.parent != net and len(sub.parent.groups) == 2  # submodels keep what they were drawn of
    with pytest.raises(TypeError):
        hash(net)


def test_models_with_concatenations_are_pickled():
    net = subfed.Model()
    a, b = net.group("a", 3), net.group("b", 4)
    net.tensor("t", [subfed.concat(a, b.repeat(2), 5).block(3), 7, a.block(2)])
    again = pickle.loads(pickle.dumps(net))
    assert again == net and again.tensors[0].bound_to == net.tensors[0].bound_to


def test_models_go_as_json_and_come_back():
    for net in (described(), subfed.models.resnet18(), subfed.Model()):
        text = net.to_json()
        assert json.loads(text)["format"] == "subfed model"
        assert subfed.Model.read(text) == net
    net = described()
    read = json.loads(net.to_json())
    assert read["groups"][1] == {"name": "classes", "extent": 2, "cut": "never"}
    assert read["tensors"][0] == {"name": "conv.weight", "dimensions": [
        [{"group": "hidden"}], [{"whole": 3}], [{"whole": 3}], [{"whole": 3}]]}
    # The text of docs/model_file.md, which C++ reads too.
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "model_file.md").read_text()
    other = subfed.Model.read(text.split("```json\n")[1].split("```")[0])
    assert [t.bound_to for t in other.tensors] == ["(4 x hidden, hidden)", "(classes, hidden)", "(hidden,)"]
    for end in range(0, len(net.to_json()) - 2, 7):
        with pytest.raises(subfed.Error, match="model file"):
            subfed.Model.read(net.to_json()[:end])
    for wrong, text in [('"version": 1', "version 2"), ('"hidden", "extent"', "nobody")]:
        with pytest.raises(subfed.Error):
            subfed.Model.read(net.to_json().replace(wrong, wrong.replace("1", "2").replace("hidden", "h")))


def test_sets_go_as_bytes_and_come_back():
    net = described()
    sub = subfed.draw(net, subfed.RandomSubset(), seed=1, round=2, client=2**64 - 1, capacity=0.5)
    data = sub.to_bytes()
    again = subfed.Submodel.from_bytes(net, data, seed=1, round=2, client=2**64 - 1, capacity=0.5)
    assert again.same_nodes(sub) and again.client == sub.client and again.to_bytes() == data
    assert subfed.Submodel.from_bytes(net, data).client == 0
    # As docs/model_file.md tells, and as C++ writes them.
    window = subfed.Submodel(net, {"hidden": [4, 5, 0]}).to_bytes()
    assert window[:4] == b"SFS1" and window[12:] == bytes([2, 6, 2, 8, 1, 11, 0, 2, 1, 0, 1])
    with pytest.raises(subfed.Error, match="'classes' is restricted"):
        sub.restricted("classes", [1]).to_bytes()


def test_broken_bytes_are_refused():
    net = described()
    data = subfed.draw(net, subfed.RandomSubset(), capacity=0.5).to_bytes()
    other = subfed.Model()
    other.group("hidden", 6)
    with pytest.raises(subfed.Error, match="of another model"):
        subfed.Submodel.from_bytes(other, data)
    for end in range(len(data)):
        with pytest.raises(subfed.Error):
            subfed.Submodel.from_bytes(net, data[:end])
    with pytest.raises(subfed.Error):
        subfed.Submodel.from_bytes(net, data + b"\0")
    for at in range(len(data)):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            try:
                subfed.Submodel.from_bytes(net, data[:at] + bytes([value]) + data[at + 1:])
            except subfed.Error:
                pass


def test_broken_states_of_pickles_are_refused():
    net = described()
    sub = subfed.draw(net, subfed.Rolling(), capacity=0.5).restricted("classes", [1])
    nodes = subfed.IndexSet(5, [1, 2])
    for kind, states in [
            (subfed.IndexSet, [(5, ((4, 2),)), (5, ((1, 2), (2, 1))), (-1, ()), (5, ((0, 0),))]),
            (subfed.Submodel, [(net, b"SFS1", (0, 0, 0, 1.0), {}),
                               (*sub.__getstate__()[:3], {7: (2, ((0, 1),))}),
                               (*sub.__getstate__()[:3], {1: (3, ((0, 1),))})]),
            (subfed.Model, ["", "{}"])]:
        for state in states:
            with pytest.raises(subfed.Error):
                kind.__new__(kind).__setstate__(state)
    for kind, state in [(subfed.IndexSet, ()), (subfed.IndexSet, ("5", ())), (subfed.Submodel, (1, 2, 3, 4)),
                        (subfed.Submodel, (net, b"", (), {})), (subfed.IndexSet, (5, ((),)))]:
        with pytest.raises((TypeError, ValueError, RuntimeError, IndexError)):
            kind.__new__(kind).__setstate__(state)
    assert pickle.loads(pickle.dumps(nodes)) == nodes and hash(nodes) == hash(subfed.IndexSet(5, [1, 2]))


def test_submodels_say_what_they_hold():
    net = described()
    sub = subfed.draw(net, subfed.Rolling(), seed=3, round=5, client=9, capacity=0.5)
    assert (sub.seed, sub.round, sub.client, float(sub.capacity)) == (3, 5, 9, 0.5)
    assert sub.parent == net and list(sub["hidden"]) == [5, 0, 1] and sub.extent("hidden") == 3
    assert sub.shape("fc.weight") == (2, 12) and sub.shapes["bn.num_batches_tracked"] == ()
    assert sub.size == 3 * 27 + 12 + 1 + 24 + 2
    assert repr(sub) == "<subfed.Submodel of client 9 in round 5: 120 of 237 elements>"
    assert "3 of 6 nodes" in str(sub) and "<svg" in sub._repr_html_()
    with pytest.raises(subfed.Error, match="no group 'hiden'"):
        sub["hiden"]
    with pytest.raises(TypeError):
        sub[3]


def test_submodels_are_pickled_with_their_restrictions():
    net = described()
    for sub in (subfed.Submodel.full(net),
                subfed.draw(net, subfed.RandomSubset(), seed=1, round=2, client=3, capacity=0.5),
                subfed.Submodel(net, {"hidden": [4, 1, 2]}, client=7),
                subfed.draw(net, subfed.Rolling(), round=5, capacity=0.5).restricted("classes", [1]),
                subfed.Submodel.full(net).planned()):
        again = pickle.loads(pickle.dumps(sub))
        assert again.same_nodes(sub) and again.runs("classes") == sub.runs("classes")
        assert (again.seed, again.round, again.client) == (sub.seed, sub.round, sub.client)
        assert again.capacity.value == sub.capacity.value


@pytest.mark.parametrize("share", [fractions.Fraction(1, 3), np.float32(0.29), 0.07])
def test_capacities_are_as_exact_after_a_pickle_as_before(share):
    net = subfed.Model()
    net.tensor("w", [net.group("nodes", 100)])
    capacity = subfed.Capacity(share)
    sub = subfed.draw(net, subfed.Rolling(), capacity=capacity)
    again = pickle.loads(pickle.dumps(sub))
    assert sub.capacity == capacity == again.capacity == pickle.loads(pickle.dumps(capacity))
    assert copy.deepcopy(capacity) == capacity
    # float(np.float32(0.29)) is 0.28999999165534973, which of 100 nodes would leave 28.
    assert subfed.draw(net, subfed.Rolling(), capacity=again.capacity).same_nodes(sub)
    model, sets, key, restricted = sub.__getstate__()
    older = subfed.Submodel.__new__(subfed.Submodel)
    older.__setstate__((model, sets, (*key[:3], capacity.value), restricted))
    assert older.capacity.value == capacity.value
    with pytest.raises(subfed.Error, match="is not that of 1/2"):
        subfed.Submodel.__new__(subfed.Submodel).__setstate__(
            (model, sets, (*key[:3], (0.25, 0.0, 1, 2)), restricted))


def test_submodels_inside_of_others():
    net = described()
    held = subfed.Submodel(net, {"hidden": [4, 1, 2]})
    inner = subfed.within(subfed.Submodel(net, {"hidden": [2, 4]}), held)
    assert list(inner["hidden"]) == [2, 0] and inner.parent == subfed.local_model(held)
    assert subfed.shared_nodes(held, subfed.Submodel(net, {"hidden": [1, 5]}), "hidden") == 1
    assert subfed.shared_parameters(held, held) == held.size
    with pytest.raises(subfed.Error, match="node 5 of group 'hidden' is not held"):
        subfed.within(subfed.Submodel(net, {"hidden": [5]}), held)


def test_described_networks():
    assert subfed.models.preresnet18().size == 11172170
    net = subfed.models.preresnet18()
    for share, size in ((0.5, 2796714), (0.25, 701018), (0.125, 176178), (0.0625, 44510)):
        assert subfed.draw(net, subfed.Prefix(), capacity=share).size == size
    assert [t.shape for t in subfed.models.mlp([4, 6, 2]).tensors] == [(6, 4), (6,), (2, 6), (2,)]
    for widths in ([], [3]):
        with pytest.raises(ValueError, match="mlp"):
            subfed.models.mlp(widths)
