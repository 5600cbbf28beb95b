# SPDX-License-Identifier: MIT
"""The same sets as in C++, schemes in Python, numbers as Python has them."""
import fractions
import pathlib
import pickle
import re

import numpy as np
import pytest

import subfed

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"


def rows(name):
    """Rows of a golden file: words and numbers, the request as a DrawRequest, nodes."""
    for line in (GOLDEN / f"{name}.inc").read_text().splitlines():
        if not line.startswith("{"):
            continue
        head, site, nodes = re.fullmatch(r'\{(.*?), ?\{(.*)\}, "(.*)"\},', line).groups()
        seed, round, client, group, extent, share = re.fullmatch(
            r'(\w+), (\d+)u, (\d+)u, "(.*)", (\d+), (.*)', site).groups()
        ratio = re.fullmatch(r"subfed::capacity::ratio\((\d+), (\d+)\)", share)
        request = subfed.DrawRequest(
            int(seed.rstrip("u"), 16), int(round), int(client), group, int(extent),
            fractions.Fraction(*map(int, ratio.groups())) if ratio else
            np.float32(share.rstrip("f")) if share.endswith("f") else float(share))
        words = [w.split("::")[-1].strip('"') for w in head.split(", ")]
        yield words, request, nodes


def spelled(nodes):
    """As the golden files have it: long sets by their hash."""
    text = " ".join(map(str, nodes))
    if len(nodes) <= 64:
        return text
    hash = 14695981039346656037
    for c in text.encode():
        hash = (hash ^ c) * 1099511628211 % 2**64
    return f"{len(nodes)} nodes {hash:016x} " + " ".join(map(str, list(nodes)[:4]))


def test_golden_rolling_windows():
    seen = 0
    for (step, overlap, walk, mode, minimum, phase, client_phase), request, nodes in rows("rolling"):
        scheme = subfed.Rolling(int(step), None if overlap == "-1" else float(overlap), walk, mode,
                                int(minimum), int(phase), int(client_phase))
        assert spelled(scheme(request)) == nodes, (scheme, request)
        seen += 1
    assert seen > 20


def test_golden_random_sets():
    seen = 0
    for (policy, count, mode, minimum), request, nodes in rows("random"):
        make = getattr(subfed.SeedPolicy, policy)
        seeds = make() if policy.startswith("per_client") else make(int(count))
        assert spelled(subfed.RandomSubset(seeds, mode, int(minimum))(request)) == nodes
        seen += 1
    assert seen > 20


def test_golden_prefixes_and_ensembles():
    for (mode, minimum), request, nodes in rows("prefix"):
        assert spelled(subfed.Prefix(mode, int(minimum))(request)) == nodes
    for (advance,), request, nodes in rows("simple_ensemble"):
        assert spelled(subfed.SimpleEnsemble(int(advance.rstrip("u")))(request)) == nodes


NET = subfed.Model()
HIDDEN = NET.group("hidden", 10)
NET.linear("fc1", 3, HIDDEN)
NET.linear("fc2", HIDDEN, NET.group("classes", 4, cut="never"))


@pytest.mark.parametrize("give", [
    lambda nodes, extent: nodes, lambda nodes, extent: np.array(nodes),
    lambda nodes, extent: np.array(nodes, np.int32), lambda nodes, extent: iter(nodes),
    lambda nodes, extent: subfed.IndexSet(extent, nodes)])
def test_any_callable_is_a_scheme(give):
    asked = []

    def alternate(request):
        asked.append(request)
        return give(list(range(request.round % 2, request.extent, 2)), request.extent)

    sub = subfed.draw(NET, alternate, seed=4, round=3, client=5, capacity=0.5)
    assert list(sub[HIDDEN]) == [1, 3, 5, 7, 9]
    assert list(sub["classes"]) == [0, 1, 2, 3]
    (request,) = asked  # nobody asks about classes, which are never cut
    assert (request.seed, request.round, request.client, request.group, request.extent) == (
        4, 3, 5, "hidden", 10)
    assert float(request.capacity) == 0.5 and request.kept() == 5 and request.kept("ceil", 7) == 7


def test_torch_nodes_are_nodes():
    torch = pytest.importorskip("torch")
    sub = subfed.draw(NET, lambda r: torch.randperm(r.extent)[:3])
    assert len(sub[HIDDEN]) == 3


def test_wrong_schemes_are_refused():
    class Broken(Exception):
        pass

    def broken(request):
        raise Broken("mine")

    with pytest.raises(Broken, match="mine"):
        subfed.draw(NET, broken)
    with pytest.raises(subfed.Error, match="node 3 is repeated, at positions 0 and 2"):
        subfed.draw(NET, lambda r: [3, 4, 3])
    with pytest.raises(subfed.Error, match=r"node 10 at position 0 is outside \[0, 10\)"):
        subfed.draw(NET, lambda r: [10])
    with pytest.raises(subfed.Error, match="extent"):
        subfed.draw(NET, lambda r: subfed.IndexSet(9, [1]))
    for nodes in (None, 3, ["a"], [1.5]):
        with pytest.raises(TypeError):
            subfed.draw(NET, lambda r: nodes)
    with pytest.raises(TypeError, match="a scheme is given as 'int'"):
        subfed.draw(NET, 3)


def test_numbers_of_clients_are_those_of_uint64():
    sub = subfed.draw(NET, subfed.RandomSubset(), client=2**64 - 1, capacity=0.5)
    assert sub.client == 2**64 - 1
    assert pickle.loads(pickle.dumps(sub)).client == 2**64 - 1
    assert subfed.draw(NET, subfed.Rolling(), client=np.uint64(2**64 - 1)).client == 2**64 - 1
    for bad in (-1, 2**64):
        with pytest.raises(subfed.Error, match=f"client is {bad}, expected 0 to 2\\^64 - 1"):
            subfed.draw(NET, subfed.Rolling(), client=bad)
    for bad in ("1", 1.0, None):
        with pytest.raises(TypeError):
            subfed.draw(NET, subfed.Rolling(), round=bad)


def test_capacities_are_numbers_or_fractions():
    for share in (0.3, np.float32(0.3), np.float64(0.3), fractions.Fraction(3, 10),
                  subfed.Capacity(0.3), subfed.Capacity.ratio(3, 10)):
        assert len(subfed.draw(NET, subfed.Prefix(), capacity=share)[HIDDEN]) == 3
    assert subfed.Capacity(np.float32(0.07)).of(100) == 7
    assert len(subfed.draw(NET, subfed.Prefix(), capacity=1)[HIDDEN]) == 10
    for bad in (0, 1.5, -0.1, float("nan"), fractions.Fraction(3, 2)):
        with pytest.raises(subfed.Error, match="capacity"):
            subfed.draw(NET, subfed.Prefix(), capacity=bad)
    for bad in ("0.5", None, [0.5]):
        with pytest.raises(TypeError):
            subfed.draw(NET, subfed.Prefix(), capacity=bad)


def test_masks_and_numbers_beyond_64_bits_are_refused_by_name():
    net = subfed.Model()
    net.tensor("w", [net.group("h", 2)])
    for mask in ([True, False], np.array([True, False]), (x > 0 for x in [1, 0])):
        with pytest.raises(TypeError, match=r"a mask is given, expected the numbers of nodes: numpy.flatnonzero"):
            subfed.draw(net, lambda request: mask)
    for node in (2**63, -2**64):
        with pytest.raises(subfed.Error, match=f"the node at position 0 is {node}, expected"):
            subfed.draw(net, lambda request: [node])
    with pytest.raises(subfed.Error, match="the capacity's denominator is 1180591620717411303424, expected"):
        subfed.draw(net, subfed.Rolling(), capacity=fractions.Fraction(1, 2**70))
    with pytest.raises(subfed.Error, match="the capacity is more than a double can hold"):
        subfed.draw(net, subfed.Rolling(), capacity=10**400)
    with pytest.raises(TypeError, match="the share of a capacity is given as 'str', expected a number"):
        subfed.CohortModel(mix=[(1, "half")])


def test_groups_may_have_capacities_of_their_own():
    sub = subfed.draw(NET, subfed.Prefix(), capacity=0.2, exceptions={HIDDEN: 0.7})
    assert len(sub["hidden"]) == 7
    with pytest.raises(subfed.Error, match="never cut"):
        subfed.draw(NET, subfed.Prefix(), exceptions={"classes": 0.5})
    with pytest.raises(subfed.Error, match="no group 'hiden'"):
        subfed.draw(NET, subfed.Prefix(), exceptions={"hiden": 0.5})


def test_words_are_checked():
    with pytest.raises(subfed.Error, match="the walk is 'sideways', expected one of 'forward', 'backward'"):
        subfed.Rolling(walk="sideways")
    with pytest.raises(subfed.Error, match="the rounding is 'up'"):
        subfed.Prefix("up")


def test_presets_differ_as_the_papers_and_their_code_do():
    request = subfed.DrawRequest(round=1, extent=5, capacity=0.5)
    assert list(subfed.Rolling.paper()(request)) == [1, 2]
    assert list(subfed.Rolling.released()(request)) == [4, 0, 1]
    assert list(subfed.Prefix.ordered()(request)) == [0, 1, 2]


def test_schemes_are_pickled_and_shown():
    request = subfed.DrawRequest(7, 3, 5, "g", 40, 0.3)
    for scheme in (subfed.Rolling(3, 0.25, "backward", "ceil", 2, 5, 7), subfed.Prefix("nearest", 2),
                   subfed.RandomSubset(subfed.SeedPolicy.pool(3), "ceil", 2),
                   subfed.SimpleEnsemble(2, "nearest", 4)):
        again = pickle.loads(pickle.dumps(scheme))
        assert repr(again) == repr(scheme)
        if not isinstance(scheme, subfed.SimpleEnsemble):
            assert again(request) == scheme(request)
    assert repr(subfed.SeedPolicy.shared(3)) == "SeedPolicy.shared(3)"


def test_ordered_dropout_and_synchronised_dropout():
    widths = subfed.WidthDistribution.uniform(5)
    assert float(widths.largest(0.5)) == 0.4
    sizes = {len(subfed.draw(NET, subfed.OrderedDropout(widths, step=s), capacity=0.6)[HIDDEN])
             for s in range(50)}
    assert sizes == {2, 4, 6}
    keep = subfed.KeepProbabilities(NET, 0.5)
    one = subfed.draw(NET, subfed.SyncDropout(keep), seed=1, client=1)
    two = subfed.draw(NET, subfed.SyncDropout(keep), seed=1, client=2)
    assert one[HIDDEN] == two[HIDDEN]
    assert subfed.keep_scale(keep, one, HIDDEN) == [2.0] * len(one[HIDDEN])
    keep.assign([0.0] * 10)
    assert len(subfed.draw(NET, subfed.SyncDropout(keep), seed=1)[HIDDEN]) == 0


def test_index_sets():
    s = subfed.IndexSet(8, [6, 7, 0, 3])
    assert list(s) == [6, 7, 0, 3] and len(s) == 4 and s.extent == 8
    assert s[0] == 6 and s[-1] == 3 and 7 in s and 1 not in s
    assert s.runs == [(0, 6, 2), (2, 0, 1), (3, 3, 1)]
    assert s.numpy().dtype == np.int64 and np.array_equal(np.asarray(s), [6, 7, 0, 3])
    assert np.arange(8)[s.numpy()].tolist() == [6, 7, 0, 3]
    with pytest.raises(IndexError):
        s[4]
    assert subfed.IndexSet.window(8, 6, 3) == subfed.IndexSet(8, [6, 7, 0])
    assert hash(subfed.IndexSet.prefix(8, 2)) == hash(subfed.IndexSet(8, range(2)))
    assert pickle.loads(pickle.dumps(s)) == s
    big = subfed.IndexSet.full(2**62)
    assert pickle.loads(pickle.dumps(big)) == big and big.is_full()
    assert repr(s) == "IndexSet(8, [6, 7, 0, 3])"


def test_an_index_set_of_another_has_the_extent_that_is_given():
    small = subfed.IndexSet(8, [6, 7, 0, 3])
    assert subfed.IndexSet(10, small) == subfed.IndexSet(10, [6, 7, 0, 3])
    assert subfed.IndexSet(8, small) == small and subfed.IndexSet(7, [3, 2]) != subfed.IndexSet(8, [3, 2])
    with pytest.raises(subfed.Error, match=r"from 6 on is empty or leaves \[0, 7\)"):
        subfed.IndexSet(7, small)


def test_integers_beyond_64_bits_are_refused_as_numbers():
    with pytest.raises(subfed.Error, match=f"the node at position 1 is {2**70}"):
        subfed.IndexSet(10, [1, 2**70])
    with pytest.raises(subfed.Error, match=f"the extent is {2**64}"):
        subfed.Model().tensor("w", [2**64])
    with pytest.raises(subfed.Error, match="the capacity.s denominator is 10+, expected"):
        subfed.Capacity(fractions.Fraction(1, 10**20))
    for big in (10**400, -10**400):
        with pytest.raises(subfed.Error, match="the capacity is more than a double can hold"):
            subfed.Capacity(big)


def test_a_scheme_may_describe_more_of_the_model_that_it_draws_from():
    net = subfed.Model()
    net.tensor("w", [net.group("a", 4), net.group("b", 5)])

    def scheme(request):
        for i in range(100):
            net.group(f"{request.group}{i}", 3)
        return [1, 2]

    sub = subfed.draw(net, scheme)
    assert len(sub.parent.groups) == 2 and sub.shape("w") == (2, 2) and len(net.groups) == 202


def scored():
    """A model and tensors of mixed types; the norms of hidden are 3, 1, 2, 0."""
    net = subfed.Model()
    hidden = net.group("hidden", 4)
    net.tensor("w", [hidden, 2])
    net.tensor("b", [hidden])
    net.tensor("steps", [], role="counter")
    net.tensor("mean", [hidden], role="statistic")
    return net, {"mean": np.full(4, 9.0), "steps": np.int64(7), "b": np.array([2, 0, 0, 0], np.float16),
                 "w": np.array([[-1, 2], [0, 1], [2, 0], [0, 0]], np.float32)}


def test_the_nodes_with_the_largest_norms():
    net, tensors = scored()
    tensors["steps"] = np.array(7)
    norms = subfed.node_norms(net, tensors)
    assert norms["hidden"].tolist() == [3, 1, 2, 0] and norms.parent == net
    assert subfed.node_norms(net, tensors, "one")["hidden"].tolist() == [5, 1, 2, 0]
    assert subfed.node_norms(net, tensors, order="infinity")["hidden"].tolist() == [2, 1, 2, 0]
    sub = subfed.draw(net, subfed.TopK(norms), capacity=0.5)
    assert list(sub["hidden"]) == [0, 2]
    assert list(subfed.draw(net, subfed.TopK(norms, "ceil", 3), capacity=0.3)["hidden"]) == [0, 1, 2]
    tensors["w"][1, 0] = np.nan
    with pytest.raises(subfed.Error, match="element that is NaN") as caught:
        subfed.node_norms(net, tensors)
    assert caught.value.tensor == "w"
    tensors["w"] = np.zeros((4, 2), np.int32)
    with pytest.raises(subfed.Error, match="'w' is a parameter of integers"):
        subfed.node_norms(net, tensors)
    with pytest.raises(subfed.Error, match="'three', expected one of 'one', 'two', 'infinity'"):
        subfed.node_norms(net, tensors, "three")


def test_scores_of_ones_own_are_written_in_place_and_a_scheme_keeps_a_copy():
    net, _ = scored()
    scores = subfed.NodeScores(net)
    scores["hidden"][...] = [1, 5, 5, 2]
    best = subfed.TopK(scores)
    scores["hidden"][0] = 100
    assert list(best(subfed.DrawRequest(group="hidden", extent=4, capacity=0.5))) == [1, 2]
    assert list(subfed.draw(net, subfed.TopK(scores), capacity=0.25)["hidden"]) == [0]
    view = scores["hidden"]
    del scores
    assert view.tolist() == [100, 5, 5, 2]  # the array keeps what it shows
    with pytest.raises(subfed.Error, match="no group 'other'"):
        subfed.NodeScores(net)["other"]
    with pytest.raises(subfed.Error, match="has 5 nodes, but there are scores of 4"):
        best(subfed.DrawRequest(group="hidden", extent=5))
    view[1] = np.nan
    for again in (pickle.loads(pickle.dumps(best)), best):
        assert list(again(subfed.DrawRequest(group="hidden", extent=4, capacity=0.5))) == [1, 2]
        assert repr(again) == "TopK(round_to='floor', minimum=1)"
    nan = subfed.NodeScores(net)
    nan["hidden"][3] = np.nan
    with pytest.raises(subfed.Error, match="a score of group 'hidden' is NaN") as caught:
        subfed.TopK(nan)
    assert caught.value.group == "hidden"
    for state in ((net, [np.zeros(3)]), (net, [])):
        with pytest.raises(subfed.Error, match="of another model"):
            subfed.NodeScores.__new__(subfed.NodeScores).__setstate__(state)
