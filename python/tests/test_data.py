# SPDX-License-Identifier: MIT
"""Which containers and tensors go in, and that what is written is the caller's own memory."""
import collections

import numpy as np
import pytest

import subfed


def small():
    net = subfed.Model()
    hidden = net.group("hidden", 6)
    net.linear("fc1", 4, hidden)
    net.batch_norm("bn", hidden)
    net.linear("fc2", hidden, 2)
    return net


NET = small()
SUB = subfed.draw(NET, subfed.Rolling(), round=2, capacity=0.5)  # nodes 2, 3, 4


def arrays(kind=np.float32):
    out = {}
    for i, t in enumerate(NET.tensors):
        size = int(np.prod(t.shape))
        out[t.name] = np.arange(100 * i, 100 * i + size).reshape(t.shape).astype(
            np.int64 if t.role == "counter" else kind)
    return out


def expected_cut(server):
    n = [2, 3, 4]
    return {"fc1.weight": server["fc1.weight"][n], "fc1.bias": server["fc1.bias"][n],
            "bn.weight": server["bn.weight"][n], "bn.bias": server["bn.bias"][n],
            "bn.running_mean": server["bn.running_mean"][n],
            "bn.running_var": server["bn.running_var"][n],
            "bn.num_batches_tracked": server["bn.num_batches_tracked"],
            "fc2.weight": server["fc2.weight"][:, n], "fc2.bias": server["fc2.bias"]}


def test_dicts_go_by_name_in_any_order():
    server = arrays()
    shuffled = dict(reversed(list(server.items())))
    for given in (server, shuffled, collections.OrderedDict(shuffled),
                  collections.ChainMap(shuffled)):
        got = subfed.slice(given, SUB)
        assert list(got) == [t.name for t in NET.tensors]
        for name, value in expected_cut(server).items():
            assert np.array_equal(got[name], value) and got[name].dtype == value.dtype, name
            assert not np.shares_memory(got[name], server[name])


def test_lists_go_in_the_order_of_the_model():
    server = arrays()
    for given in (list(server.values()), tuple(server.values()), iter(server.values())):
        got = subfed.slice(given, SUB)
        for a, b in zip(got, expected_cut(server).values()):
            assert np.array_equal(a, b)


def test_what_is_no_container_of_tensors_is_a_type_error():
    for given in (np.zeros((9, 4), np.float32), "abc", 7, None):
        with pytest.raises(TypeError, match="expected a dict by name, or a list"):
            subfed.slice(given, SUB)


def test_missing_and_unknown_names_are_errors_that_name_them():
    server = arrays()
    lacking = {k: v for k, v in server.items() if k != "bn.bias"}
    with pytest.raises(subfed.Error, match="the global tensor 'bn.bias' is missing") as caught:
        subfed.slice(lacking, SUB)
    assert caught.value.tensor == "bn.bias"
    with pytest.raises(subfed.Error, match="'fc3.bias' is not in the model's description"):
        subfed.slice({**server, "fc3.bias": np.zeros(2)}, SUB)
    update = subfed.slice(server, SUB)
    del update["fc1.bias"]
    with pytest.raises(subfed.Error) as caught:
        subfed.average_cohort(NET, [(SUB, update)], server)
    assert (caught.value.tensor, caught.value.client) == ("fc1.bias", 0)
    assert isinstance(caught.value, ValueError)


def test_wrong_shapes_and_types_name_the_tensor_and_the_client_and_write_nothing():
    server, update = arrays(), None
    before = {k: v.copy() for k, v in server.items()}
    sub = subfed.draw(NET, subfed.Rolling(), round=2, client=2**64 - 1, capacity=0.5)
    for name, value, text in [
            ("fc1.bias", np.zeros(1, np.float32), r"\(1,\)"),  # which would be spread by +=
            ("bn.weight", np.zeros(3, np.int32), "int32"),
            ("bn.num_batches_tracked", np.zeros((), np.float32), "float")]:
        update = {**subfed.slice(server, sub), name: value}
        with pytest.raises(subfed.Error, match=text) as caught:
            subfed.average_cohort(NET, [(sub, update)], server)
        assert (caught.value.tensor, caught.value.client) == (name, 2**64 - 1)
        assert name in str(caught.value)
    for name in server:
        assert np.array_equal(server[name], before[name])


def test_out_is_written_and_given_back():
    server = arrays()
    out = {k: np.full(v.shape, 9).astype(v.dtype) for k, v in expected_cut(server).items()}
    assert subfed.slice(server, SUB, out=out) is out
    for name, value in expected_cut(server).items():
        assert np.array_equal(out[name], value)
    half = {k: np.zeros(v.shape, v.dtype if v.dtype == np.int64 else np.float16)
            for k, v in out.items()}
    subfed.slice(server, SUB, out=half)
    assert half["fc1.weight"].dtype == np.float16
    assert np.array_equal(half["fc1.weight"], server["fc1.weight"][[2, 3, 4]])


def test_scatter_and_scatter_add_write_in_place():
    server = arrays()
    before = {k: v.copy() for k, v in server.items()}
    local = {k: v + 1 for k, v in subfed.slice(server, SUB).items()}
    views = {k: v[...] for k, v in server.items()}
    subfed.scatter(local, SUB, views)
    assert np.array_equal(server["fc1.bias"][2:5], before["fc1.bias"][2:5] + 1)
    assert np.array_equal(server["fc1.bias"][:2], before["fc1.bias"][:2])
    subfed.scatter_add(local, SUB, into=server)
    assert np.array_equal(server["fc1.bias"][2:5], 2 * before["fc1.bias"][2:5] + 2)


def test_strided_memory_of_the_server_is_written_where_it_is():
    wide = {k: np.zeros(tuple(2 * e for e in v.shape), v.dtype) for k, v in arrays().items()}
    views = {k: v[tuple(slice(None, None, -2) for _ in v.shape) + (...,)] for k, v in wide.items()}
    subfed.average_cohort(NET, [(SUB, {k: v + 1 for k, v in expected_cut(arrays()).items()})], views)
    assert np.array_equal(views["fc1.weight"][2:5], arrays()["fc1.weight"][2:5] + 1)
    assert wide["fc1.weight"][0].max() == 0


def test_overlapping_memory_is_refused():
    server = arrays()
    update = subfed.slice(server, SUB)
    update["fc1.bias"] = server["fc1.bias"][:3]
    with pytest.raises(subfed.Error, match="memory|overlap|share") as caught:
        subfed.average_cohort(NET, [(SUB, update)], server)
    assert "fc1.bias" in str(caught.value)


def test_tensors_that_stay_with_clients_may_be_missing_in_updates():
    net = small().mark(lambda t: t.name.startswith("bn"), "local")
    server = arrays()
    update = {k: v + 1 for k, v in subfed.slice(server, subfed.Submodel.full(net)).items()
              if not k.startswith("bn")}
    subfed.average_cohort(net, [(subfed.Submodel.full(net), update)], server)
    assert np.array_equal(server["bn.weight"], arrays()["bn.weight"])
    assert np.array_equal(server["fc1.bias"], arrays()["fc1.bias"] + 1)


def test_counters_are_combined_as_integers():
    server = arrays()
    server["bn.num_batches_tracked"][...] = 2**60 + 1
    updates = []
    for client, steps in enumerate([3, 5]):
        sub = subfed.draw(NET, subfed.Rolling(), client=client)
        update = subfed.slice(server, sub)
        update["bn.num_batches_tracked"] += steps
        updates.append((sub, update))
    subfed.average_cohort(NET, updates, server, integers="max")
    assert server["bn.num_batches_tracked"] == 2**60 + 6


torch = pytest.importorskip("torch")


def tensors(kind=torch.float32):
    return {k: torch.from_numpy(v.copy()).to(torch.int64 if v.dtype == np.int64 else kind)
            for k, v in arrays().items()}


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_torch_tensors_of_every_floating_type(kind):
    server = tensors(kind)
    got = subfed.slice(server, SUB)
    assert got["fc1.weight"].dtype == kind and got["fc1.weight"].is_contiguous()
    assert torch.equal(got["fc2.weight"], server["fc2.weight"][:, 2:5])
    subfed.average_cohort(NET, [(SUB, {k: v + 1 for k, v in got.items()})], server)
    assert torch.equal(server["fc1.bias"][2:5], tensors(kind)["fc1.bias"][2:5] + 1)


def test_halves_from_clients_go_into_a_float_server():
    server = tensors()
    update = {k: v.to(torch.bfloat16) if v.is_floating_point() else v
              for k, v in subfed.slice(server, SUB).items()}
    update["fc1.bias"] = torch.tensor([0.5, 1.5, 2.5], dtype=torch.half)
    subfed.average_cohort(NET, [(SUB, update)], server)
    assert server["fc1.bias"][2:5].tolist() == [0.5, 1.5, 2.5]


def test_parameters_that_require_grad_go_in_and_are_written():
    module = torch.nn.ModuleDict({"fc1": torch.nn.Linear(4, 6), "bn": torch.nn.BatchNorm1d(6),
                                  "fc2": torch.nn.Linear(6, 2)})
    with torch.no_grad():
        module["fc1"].bias.zero_()
    params = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    assert params["fc1.bias"].requires_grad
    for server in (params, module, module.state_dict()):
        got = subfed.slice(server, SUB)
        assert not got["fc1.bias"].requires_grad
        start = module["fc1"].bias[2].item()
        subfed.average_cohort(NET, [(SUB, {k: v + 1 for k, v in got.items()})], server)
        assert module["fc1"].bias[2].item() == start + 1
    assert module["fc1"].bias.requires_grad and module["fc1"].bias.is_leaf


def test_autograd_sees_what_is_written():
    net = subfed.Model()
    net.tensor("buf", [net.group("g", 3)])
    p, buf = torch.ones(3, requires_grad=True), torch.ones(3)
    y = (p * buf).sum()
    before = buf._version
    subfed.average_cohort(net, [(subfed.Submodel.full(net), [torch.full((3,), 5.0)])], [buf])
    assert buf.tolist() == [5, 5, 5] and buf._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_every_call_that_writes_raises_the_version_and_none_that_reads():
    net = subfed.Model()
    net.tensor("w", [net.group("g", 3), 2])
    net.tensor("s", [])
    full = subfed.Submodel.full(net)
    to, zero = [torch.zeros(3, 2), torch.tensor(0.0)], [torch.zeros(3, 2), torch.tensor(0.0)]
    mean, sgd = subfed.SelectiveAverage(net), subfed.ServerSGD(net)
    mean.add(full, zero)
    sgd.begin(to)
    calls = [lambda: subfed.slice(zero, full, out=to), lambda: subfed.scatter(zero, full, to),
             lambda: subfed.scatter_add(zero, full, to), lambda: mean.finish(to),
             lambda: subfed.average_cohort(net, [(full, zero)], to),
             lambda: sgd.finish(mean.held(), to)]
    for call in calls:
        before = [t._version for t in to]
        call()
        assert all(t._version > b for t, b in zip(to, before))
    assert [t._version for t in zero] == [0, 0]
    view = to[0][1:]
    before = to[0]._version
    half = subfed.Model()
    half.tensor("w", [half.group("g", 2), 2])
    subfed.scatter([torch.ones(2, 2)], subfed.Submodel.full(half), [view])
    assert to[0]._version > before  # a view has its base's counter
    with torch.inference_mode():
        made = torch.zeros(2, 2)
    subfed.scatter([torch.ones(2, 2)], subfed.Submodel.full(half), [made])
    assert made.sum() == 4


def test_a_call_that_is_refused_raises_no_version():
    server = tensors()
    before = {k: v._version for k, v in server.items()}
    with pytest.raises(subfed.Error):
        subfed.average_cohort(NET, [(SUB, {**subfed.slice(server, SUB), "fc2.bias": torch.zeros(1)})],
                              server)
    assert {k: v._version for k, v in server.items()} == before


def test_non_contiguous_transposed_expanded_and_empty_tensors():
    server = tensors()
    server["fc1.weight"] = torch.arange(24.).reshape(4, 6).t()
    server["fc2.weight"] = torch.arange(48.).reshape(4, 12)[::2, ::2]
    got = subfed.slice(server, SUB)
    assert torch.equal(got["fc1.weight"], server["fc1.weight"][2:5])
    subfed.scatter({k: v + 1 for k, v in got.items()}, SUB, server)
    assert torch.equal(server["fc2.weight"][:, 2:5], got["fc2.weight"] + 1)
    update = {**got, "fc1.weight": torch.tensor(7.).expand(3, 4)}
    subfed.average_cohort(NET, [(SUB, update)], server)
    assert (server["fc1.weight"][2:5] == 7).all()
    server["fc1.bias"] = torch.tensor(7.).expand(6)
    with pytest.raises(subfed.Error, match="fc1.bias"):
        subfed.average_cohort(NET, [(SUB, update)], server)
    none = NET.find_group("hidden")
    subfed.average_cohort(NET, [(SUB.with_nodes(none, []), subfed.slice(tensors(),
                                SUB.with_nodes(none, [])))], tensors())


def test_booleans_and_integers_of_torch():
    net = subfed.Model()
    g = net.group("g", 4)
    for name in ("b", "u8", "i16", "i32"):
        net.tensor(name, [g], role="counter")
    server = {"b": torch.tensor([True, False, True, False]), "u8": torch.arange(4).to(torch.uint8),
              "i16": torch.arange(4).to(torch.int16), "i32": torch.arange(4).to(torch.int32)}
    sub = subfed.Submodel(net, {g: [3, 0]})
    got = subfed.slice(server, sub)
    assert got["b"].dtype == torch.bool and got["b"].tolist() == [False, True]
    assert got["i16"].tolist() == [3, 0]
    subfed.scatter({**got, "b": torch.tensor([True, False])}, sub, server)
    assert server["b"].tolist() == [False, False, True, True]
    flags = {"b": np.array([1, 0, 1, 0], bool), "u8": np.zeros(4, np.uint8),
             "i16": np.zeros(4, np.int16), "i32": np.zeros(4, np.int32)}
    assert subfed.slice(flags, sub)["b"].tolist() == [False, True]


def test_tensors_that_the_cpu_does_not_read_are_refused_by_name():
    for bad, text in [(torch.zeros(6, dtype=torch.complex64), "complex|Complex"),
                      (torch.zeros(6).to_sparse(), "cannot be read"),
                      (torch.zeros(6, device="meta"), "fc1.bias"),
                      (torch.zeros(6, dtype=torch.complex64).conj().imag, "negated view"),
                      (torch.quantize_per_tensor(torch.zeros(6), 1.0, 0, torch.qint8), "fc1.bias")]:
        server = tensors()
        server["fc1.bias"] = bad
        with pytest.raises(subfed.Error, match=text) as caught:
            subfed.slice(server, SUB)
        assert caught.value.tensor == "fc1.bias"


def test_a_server_of_torch_takes_updates_of_numpy_and_the_other_way_round():
    server, update = tensors(), subfed.slice(arrays(), SUB)
    subfed.average_cohort(NET, [(SUB, {k: v + 1 for k, v in update.items()})], server)
    assert server["fc1.bias"][2] == arrays()["fc1.bias"][2] + 1
    server = arrays()
    subfed.average_cohort(NET, [(SUB, subfed.slice(tensors(), SUB))], server)
    assert np.array_equal(server["fc1.bias"], arrays()["fc1.bias"])


def test_tied_weights_have_two_names_in_a_state_dict():
    net = subfed.Model()
    width = net.group("width", 4)
    words = net.embedding("words", 10, width)
    net.linear_tied("out", words, width, 10)
    module = torch.nn.ModuleDict({"words": torch.nn.Embedding(10, 4), "out": torch.nn.Linear(4, 10)})
    module["out"].weight = module["words"].weight
    sub = subfed.draw(net, subfed.Rolling(), round=1, capacity=0.5)
    got = subfed.slice(module, sub)
    assert set(got) == set(module.state_dict()) and got["out.weight"] is got["words.weight"]
    with torch.no_grad():
        module["words"].weight.fill_(0.25)
    got = subfed.slice(module, sub)
    got["words.weight"] += 1
    subfed.average_cohort(net, [(sub, got)], module)
    assert module["words"].weight[0].tolist() == [0.25, 1.25, 1.25, 0.25]
    module["out"].weight = torch.nn.Parameter(torch.zeros(10, 4))  # no longer tied
    with pytest.raises(subfed.Error, match="'out.weight' is not in the model's description"):
        subfed.slice(module, sub)
