# SPDX-License-Identifier: MIT
"""Proof of descriptions with networks in Python, descriptions from two widths."""
import gc
import sys

import numpy as np
import pytest

import subfed


def described(second="h2"):
    """Three layers with batch norms; `second` names the group that the second norm is tied to."""
    net = subfed.Model()
    h1, h2 = net.group("h1", 8), net.group("h2", 8)
    net.linear("fc1", 3, h1)
    net.batch_norm("bn1", h1, num_batches_tracked=False)
    net.linear("fc2", h1, h2)
    net.batch_norm("bn2", second, num_batches_tracked=False)
    net.linear("fc3", h2, net.group("classes", 2, cut="never"))
    return net


INPUTS = np.random.default_rng(1).normal(size=(5, 3))


def forward(t):
    def linear(name, x):
        return x @ t[name + ".weight"].T + t[name + ".bias"]

    def norm(name, x):
        return ((x - t[name + ".running_mean"]) / np.sqrt(t[name + ".running_var"] + 1e-5)
                * t[name + ".weight"] + t[name + ".bias"])

    x = np.maximum(norm("bn1", linear("fc1", INPUTS)), 0)
    return linear("fc3", np.maximum(norm("bn2", linear("fc2", x)), 0))


def test_a_right_description_is_proven_with_what_python_computes():
    proof = subfed.prove_description(described(), forward)
    assert proof and proof.verdict == "right" and proof.broken == [] and proof.not_shown == []
    assert str(proof).startswith("right: 3 groups, ") and proof.rounding < 1e-12 < proof.tolerance
    assert proof.whole == [] and proof.runs > 20
    assert repr(subfed.check_description(described(), forward)) == repr(proof)


def test_a_wrong_one_is_not_and_the_error_says_what_would_be_right():
    net = described("h1")
    proof = subfed.prove_description(net, forward)
    assert not proof and proof.verdict == "wrong"
    assert [b.group for b in proof.broken] == ["h1", "h2"] and proof.broken[0].change > 0.1
    advice = "bind dimension 0 of bn2.weight, bn2.bias, bn2.running_mean, bn2.running_var as h2"
    assert proof.broken[1].advice == [advice]
    with pytest.raises(subfed.Error, match=advice) as caught:
        subfed.check_description(net, forward)
    assert caught.value.group == "h1"
    assert subfed.prove_description(net, forward, advice_runs=0).broken[1].advice == []


def test_a_network_may_describe_more_of_the_model_that_is_proven():
    net, runs = described(), []

    def growing(t):
        runs.append(net.tensor(f"more{len(runs)}", [net.group(f"more{len(runs)}", 3)]))
        return forward(t)

    proof = subfed.prove_description(net, growing)
    assert proof.verdict == "right" and len(runs) == proof.runs
    assert "more0" not in str(proof)


def test_complex_outputs_are_two_numbers():
    net = described("h1")  # wrong, which the imaginary parts alone show
    for kind in (np.asarray, list, lambda a: pytest.importorskip("torch").tensor(a).conj()):
        proof = subfed.prove_description(net, lambda t: kind((1 + 1j * forward(t)).ravel()), advice_runs=0)
        assert [b.group for b in proof.broken] == ["h1", "h2"]


def test_outputs_that_are_no_numbers_are_refused():
    for outputs in (None, "1.5", [1.0, None], object()):
        with pytest.raises(TypeError, match="expected numbers"):
            subfed.prove_description(described(), lambda t: outputs)


def test_outputs_that_contain_themselves_are_refused():
    endless = [1.0]
    endless.append(endless)
    with pytest.raises(RecursionError):
        subfed.prove_description(described(), lambda t: endless)


def test_what_the_outputs_do_not_show_is_listed_and_may_be_known():
    net = described()
    net.tensor("unread", ["h1"])
    proof = subfed.prove_description(net, forward)
    assert not proof and proof.verdict == "not_shown"
    (use,) = proof.not_shown
    assert (use.tensor, use.dimension, use.part) == ("unread", 0, 0)
    with pytest.raises(subfed.Error, match="do not depend on dimension 0 of unread") as caught:
        subfed.check_description(net, forward)
    assert caught.value.tensor == "unread"
    assert subfed.check_description(net, forward, without_effect=["unread"])
    # A group that is in order is not permuted; that is no complaint.
    assert subfed.check_description(net, forward, without_effect=["unread"],
                                    in_order=["h1"]).not_permuted == ["h1"]


def test_values_of_ones_own_of_any_type_in_any_order():
    net = described()
    values = subfed.random_values(net, 3)
    assert all(v.dtype == np.float64 and v.shape == t.shape for v, t in zip(values.values(), net.tensors))
    given = {k: v.astype(np.float32) for k, v in reversed(list(values.items()))}
    assert subfed.prove_description(net, forward, given)
    given["bn2.weight"][...] = 0  # hides what is in front of it
    assert subfed.prove_description(net, forward, given).verdict == "not_shown"
    with pytest.raises(subfed.Error, match="'fc1.bias' is missing"):
        subfed.prove_description(net, forward, {k: v for k, v in given.items() if k != "fc1.bias"})
    with pytest.raises(subfed.Error, match=r"'fc1.bias' has shape \(1,\)"):
        subfed.prove_description(net, forward, {**given, "fc1.bias": np.zeros(1)})


def test_outputs_may_be_anything_of_numbers():
    net = subfed.models.mlp([3, 8, 2])

    def two_layers(t):
        x = np.maximum(INPUTS @ t["fc1.weight"].T + t["fc1.bias"], 0)
        return x @ t["fc2.weight"].T + t["fc2.bias"]

    for give in (lambda y: y, lambda y: y.tolist(), lambda y: {"a": y[:2], "b": [y[2], tuple(y[3:])]},
                 lambda y: y.astype(np.float32).astype(np.float64), lambda y: [float(y[0, 0]), y]):
        assert subfed.prove_description(net, lambda t: give(two_layers(t)), tolerance=1e-4)
    for give, text in [(lambda y: "no", "gave 'str'"), (lambda y: [object()], "gave 'object'")]:
        with pytest.raises(TypeError, match=text):
            subfed.prove_description(net, lambda t: give(two_layers(t)))
    for give, text in [(lambda y: [], "no outputs"), (lambda y: 0 * y, "all zero"),
                       (lambda y: y * np.nan, "gave NaN"),
                       (lambda y: y * np.random.default_rng().random(), "other outputs the second time")]:
        with pytest.raises(subfed.Error, match=text):
            subfed.prove_description(net, lambda t: give(two_layers(t)))
    with pytest.raises(TypeError, match="expected a callable"):
        subfed.prove_description(net, 7)


def test_a_function_of_two_arguments_gets_the_submodel():
    net = subfed.models.mlp([3, 8, 2])
    seen = []

    def with_submodel(sub, t):
        seen.append(sub)
        assert sub.shape("fc1.weight") == t["fc1.weight"].shape
        x = np.maximum(INPUTS @ t["fc1.weight"].T + t["fc1.bias"], 0)
        return x @ t["fc2.weight"].T + t["fc2.bias"]

    assert subfed.prove_description(net, with_submodel)
    assert all(s.parent.size for s in seen)
    assert subfed.cut_differences(net, with_submodel).keys() == {"hidden1"}
    assert seen[-1].extent("hidden1") == 4


def test_exceptions_of_the_network_come_through_and_arrays_may_be_kept():
    net = subfed.models.mlp([3, 8, 2])
    kept = []

    class Broken(Exception):
        pass

    def broken(t):
        kept.append(t["fc1.weight"])
        raise Broken("mine")

    for call in (lambda: subfed.prove_description(net, broken), lambda: subfed.cut_differences(net, broken),
                 lambda: subfed.find_coarse_ties(net, broken)):
        with pytest.raises(Broken, match="mine"):
            call()
    gc.collect()
    for array in kept:  # the memory is Python's
        array += 1
    references = sys.getrefcount(kept[0])
    assert references == 2


def test_groups_that_tie_too_much_are_found():
    net = subfed.Model()
    h = net.group("h", 6)
    for i in range(2):
        net.linear(f"a{i}", 3, h)
        net.linear(f"b{i}", h, 2)

    def two_branches(t):
        return [np.tanh(INPUTS @ t[f"a{i}.weight"].T + t[f"a{i}.bias"]) @ t[f"b{i}.weight"].T
                + t[f"b{i}.bias"] for i in range(2)]

    assert subfed.prove_description(net, two_branches)
    (tie, *_) = subfed.find_coarse_ties(net, two_branches)
    assert tie.group == "h" and {b.tensor for b in tie.apart} <= {t.name for t in net.tensors}
    assert subfed.find_coarse_ties(subfed.models.mlp([3, 8, 2]), lambda t: np.maximum(
        INPUTS @ t["fc1.weight"].T + t["fc1.bias"], 0) @ t["fc2.weight"].T) == []


def test_where_cutting_is_masking_and_where_it_is_not():
    net = described()
    differences = subfed.cut_differences(net, forward)
    assert set(differences) == {"h1", "h2"} and max(differences.values()) < 1e-12
    sub = subfed.draw(net, subfed.Rolling(), round=1, capacity=0.5)
    assert subfed.cut_difference(sub, subfed.random_values(net), forward) < 1e-12
    norm = subfed.models.mlp([3, 8, 2])

    def over_the_group(t):
        x = INPUTS @ t["fc1.weight"].T + t["fc1.bias"]
        return (x - x.mean(1, keepdims=True)) @ t["fc2.weight"].T + t["fc2.bias"]

    assert subfed.prove_description(norm, over_the_group)
    assert subfed.cut_differences(norm, over_the_group)["hidden1"] > 0.01


def test_doubts_bindings_and_orders_without_a_network():
    net = described()
    net.group("nobody", 3)
    assert [(d.kind, d.group) for d in subfed.find_doubts(net)] == [("no_tensor", "nobody")]
    assert "is of no tensor" in subfed.find_doubts(net)[0].text
    uses = subfed.bindings_of(net, "h2")
    assert [(b.tensor, b.dimension) for b in uses][:2] == [("fc2.weight", 0), ("fc2.bias", 0)]
    assert repr(uses[-1]) == "<dimension 1 of fc3.weight (h2)>"
    order = subfed.permuted(net, 2)
    assert sorted(order["h1"]) == list(range(8)) and list(order["h1"]) != list(range(8))
    assert list(order["classes"]) == [0, 1]
    values = subfed.random_values(net)
    assert np.allclose(forward(subfed.slice(values, order)), forward(values))


def widths(n):
    return {"a.weight": (2 * n, 3), "a.bias": (2 * n,), "b.weight": (4, 2 * n * 9), "odd": (5,)}


def test_descriptions_from_two_widths():
    made = subfed.derive_widths([widths(8), dict(reversed(list(widths(4).items())))])
    assert [t.name for t in made.net.tensors] == list(widths(8)) and made.net == made[0]
    assert made.net.tensors[2].bound_to == "(4, width x 9)"
    assert any("they could be copies" in d for d in made.doubts)
    copies = subfed.derive_widths([widths(8), widths(4)], [("b.weight", 1, 9)])
    assert copies.net.tensors[2].bound_to != made.net.tensors[2].bound_to
    for wrong, text in [([widths(8)], "two or more"), ([widths(8), {"a.weight": (3,)}], "tensors"),
                        ([widths(8), {**widths(4), "odd": (5, 1)}], "odd")]:
        with pytest.raises(subfed.Error, match=text):
            subfed.derive_widths(wrong)
    with pytest.raises(subfed.Error, match="copies are given"):
        subfed.derive_widths([widths(8), widths(4)], [("nobody", 0, 2)])
    with pytest.raises(TypeError, match="tensor, dimension, times"):
        subfed.derive_widths([widths(8), widths(4)], [("b.weight", 1)])


torch = pytest.importorskip("torch")


def convolutions(width):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(2 * width * 16, 5))


def test_a_torch_module_is_described_from_two_widths_and_proven():
    torch.manual_seed(1)
    wide, x = convolutions(8), torch.randn(2, 3, 4, 4)
    before = {k: v.clone() for k, v in wide.state_dict().items()}
    net = subfed.describe(wide, convolutions(4), inputs=[x])
    net.check_shapes(wide)
    roles = {t.name: t.role for t in net.tensors}
    assert (roles["0.weight"], roles["1.running_var"], roles["1.num_batches_tracked"]) == (
        "parameter", "statistic", "counter")
    assert net.tensors[-2].bound_to == "(5, width x 32)"
    assert all(torch.equal(v, before[k]) for k, v in wide.state_dict().items()) and wide.training
    sub = subfed.draw(net, subfed.Prefix(), capacity=0.5)
    half = convolutions(4)
    half.load_state_dict(subfed.slice(wide, sub))
    assert half(x).shape == (2, 5)
    with pytest.warns(UserWarning, match="could be copies"):
        subfed.describe(wide, convolutions(4))
    with pytest.raises(subfed.Error, match="1 networks are given without inputs"):
        subfed.describe(wide)


def test_a_wrong_width_is_found_by_the_inputs():
    class Channels(torch.nn.Module):  # last: what the shapes take for blocks are copies
        def __init__(self, width):
            super().__init__()
            self.conv, self.fc = torch.nn.Conv2d(1, width, 1), torch.nn.Linear(4 * width, 3)

        def forward(self, x):
            return self.fc(torch.relu(self.conv(x)).permute(0, 2, 3, 1).flatten(1))

    x = torch.randn(3, 1, 2, 2)
    with pytest.raises(subfed.Error, match="describe dimension 1 of fc.weight as 4 x width"):
        subfed.describe(Channels(8), Channels(4), inputs=[x])
    net = subfed.describe(Channels(8), Channels(4), inputs=[x], copies=[("fc.weight", 1, 4)])
    assert net.tensors[2].bound_to == "(3, 4 x width)"


def test_tied_weights_are_given_under_both_names():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.fc, self.out = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 10)
            self.out.weight = self.words.weight

        def forward(self, x):
            return self.out(torch.tanh(self.fc(self.words(x))))

    net = subfed.Model()
    width = net.group("width", 4)
    words = net.embedding("words", 10, width)
    net.linear("fc", width, width)
    net.linear_tied("out", words, width, 10)
    assert subfed.check_description(net, subfed.forward_of(Tied(), torch.arange(10)))


def test_torchvisions_resnet18_is_what_models_describes():
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(1)
    net = subfed.models.resnet([2, 2, 2, 2], False, width=4)  # a sixteenth of its channels
    run = subfed.forward_of(torchvision.models.resnet18(), torch.randn(2, 3, 16, 16))
    proof = subfed.check_description(net, run)
    assert proof.verdict == "right" and proof.rounding < 1e-9
    wrong = subfed.Model.read(net.to_json().replace(
        '{"name": "layer3.1.bn1.weight", "dimensions": [[{"group": "layer3.1.middle1"',
        '{"name": "layer3.1.bn1.weight", "dimensions": [[{"group": "layer3"'))
    assert wrong != net
    with pytest.raises(subfed.Error, match="bind dimension 0 of layer3.1.bn1.weight as layer3.1.middle1"):
        subfed.check_description(wrong, run, orders=1)


def test_a_torch_module_is_described_from_its_operators():
    torch.manual_seed(1)
    module, x = convolutions(8), torch.randn(2, 3, 4, 4)
    before = {k: v.clone() for k, v in module.state_dict().items()}
    net = subfed.describe(module, inputs=[x])
    net.check_shapes(module)
    assert [t.name for t in net.tensors] == list(module.state_dict())
    roles = {t.name: t.role for t in net.tensors}
    assert (roles["0.weight"], roles["1.running_var"], roles["1.num_batches_tracked"]) == (
        "parameter", "statistic", "counter")
    assert [g.extent for g in net.groups if g.cut != "never"] == [8, 16] and net.tensors[-2].shape == (5, 256)
    assert subfed.check_description(net, subfed.forward_of(module, x))
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    with pytest.raises(subfed.Error, match="onnx"):
        subfed.derive_model(b"no network")


def test_torchvisions_resnet18_is_described_from_its_operators():
    torchvision = pytest.importorskip("torchvision")
    module = torchvision.models.resnet18()
    net, known = subfed.describe(module, inputs=[torch.randn(1, 3, 64, 64)]), subfed.models.resnet18()
    net.check_shapes(module)
    assert [t.name for t in net.tensors] == list(module.state_dict())

    def ties(model):  # which uses belong together, whatever the groups are called
        return {frozenset((b.tensor, b.dimension) for b in subfed.bindings_of(model, g.name))
                for g in model.groups if g.cut != "never"}

    assert ties(net) == ties(known)
    assert {t.name: t.role for t in net.tensors} == {t.name: t.role for t in known.tensors}
