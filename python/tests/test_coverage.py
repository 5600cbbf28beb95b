# SPDX-License-Identifier: MIT
"""Coverage, populations, theory, costs."""
import pickle

import numpy as np
import pytest

import subfed
from subfed import theory

NET = subfed.models.mlp([3, 8, 2])


def simulated(scheme, rounds=8, kind=subfed.Coverage, **named):
    seen = kind(NET, **named)
    for round in range(rounds):
        for client in range(2):
            seen.record(subfed.draw(NET, scheme, round=round, client=client, capacity=0.25))
        seen.end_round()
    return seen


def test_rolling_windows_hold_all_nodes_alike_and_prefixes_do_not():
    seen = simulated(subfed.Rolling())
    assert seen.counts("hidden1").tolist() == [4] * 8 and seen.counts("hidden1").dtype == np.int64
    assert seen.summary().gini == 0 and seen.summary("hidden1").first_full_cover == 7
    assert seen.first_cover() == 7 and seen.complete() and seen.rounds == 8 and seen.clients == 16
    assert seen.rounds_since("hidden1").tolist() == [0, 6, 5, 4, 3, 2, 1, 0]
    still = simulated(subfed.Prefix())
    assert still.summary().unseen == 6 and still.first_cover() is None
    assert "6 of 8 never" in repr(still) and "<svg" in still._repr_html_()
    assert still.holders("hidden1").most == 2


def test_coverage_is_kept_and_joined():
    seen = simulated(subfed.RandomSubset())
    assert pickle.loads(pickle.dumps(seen)).to_text() == seen.to_text()
    again = subfed.Coverage.read(NET, seen.to_text())
    again.append(seen)
    assert again.rounds == 16 and (again.counts("hidden1") == 2 * seen.counts("hidden1")).all()
    with pytest.raises(subfed.Error, match="line 1"):
        subfed.Coverage.read(NET, "nothing")
    with pytest.raises(subfed.Error, match="another model"):
        seen.record(subfed.Submodel.full(subfed.models.mlp([3, 9, 2])))


def test_parameters_are_held_by_both_of_their_ends():
    seen = simulated(subfed.Rolling(), kind=subfed.ParameterCoverage)
    assert seen.count("fc1.weight", [0, 2]) == 4
    assert seen.histogram("fc1.weight") == {4: 24}
    assert seen.summary().min == 4 and seen.first_cover() == 7
    assert sum(seen.rounds_since().values()) == NET.size
    assert subfed.ParameterCoverage.read(NET, seen.to_text()).to_text() == seen.to_text()


def test_classes_of_clients():
    seen = subfed.CoverageByClass(NET, 2)
    seen.record(subfed.draw(NET, subfed.Prefix(), capacity=1.0), 0)
    seen.record(subfed.draw(NET, subfed.Prefix(), capacity=0.25), 1)
    seen.end_round()
    assert seen.in_all().counts("hidden1").tolist() == [2, 2] + [1] * 6
    assert seen.of_class(1).summary().unseen == 6


def test_populations():
    cohort = subfed.CohortModel(clients=100, participation=0.1, mix="uniform", seed=3)
    assert cohort.asked == 10
    members = cohort.members(4)
    assert len(members) == 10 and [m.client for m in members] == sorted(m.client for m in members)
    assert [repr(m) for m in members] == [repr(m) for m in cohort.members(4)]
    everyone = subfed.CohortModel(clients=100, participation=1.0, mix=[(1, 1), (0.25, 3)], seed=3)
    assert sum(m.client_class == 1 for m in everyone.members(0)) == 75
    for member in everyone.members(0):
        subfed.draw(NET, subfed.Rolling(), client=member.client, capacity=member.capacity)
    with pytest.raises(subfed.Error, match="participation"):
        subfed.CohortModel(participation=2)
    with pytest.raises(subfed.Error, match="the mix is 'equal'"):
        subfed.CohortModel(mix="equal")


def test_theory_agrees_with_what_is_counted():
    assert theory.window_counts(8, [(2, 1)] * 2, 8) == simulated(
        subfed.Rolling()).counts("hidden1").tolist()
    assert theory.window_first_cover(8, [2]) == 7
    assert theory.window_first_cover(8, [(2, 0, 0)]) is None
    one = theory.RandomRound(8, [2])
    assert theory.unseen_probability(one, 3) == pytest.approx(0.75**3)
    cover = theory.first_cover(one)
    mean, variance = theory.first_cover_moments(one)
    assert cover.moments() == pytest.approx((mean, variance))
    assert cover.after(3) == pytest.approx(1) and cover.quantile(0.5) > 4
    bounds = theory.first_cover_bounds(one)
    assert bounds.mean_at_least <= mean <= bounds.mean_at_most
    drawn = theory.RandomRound.drawn(8, 2, [(8, 0.5), (0, 0.5)])
    assert theory.unseen_probability(drawn, 1) == pytest.approx(0.25)
    assert theory.random_counts(one, 8).mean == 2
    assert theory.rounds_until_chosen(10)[0] == pytest.approx(29.28968253968254)
    assert theory.rounds_until_chosen_in_turn(10, 3) == 30
    assert sum(theory.held_probabilities(one, 3, 3)) == pytest.approx(1)
    assert theory.rolling_first_cover(one).quantile(1.0) >= 7
    assert len(theory.rolling_parameter_counts(8, 2, 6, 3)) == 2
    assert theory.unseen_parameter_probability([one, one], 1) == pytest.approx(1 - 1 / 16)
    assert theory.window_unseen_probabilities(one, 0, 5)[:3] == [0, 0, 1]
    with pytest.raises(subfed.Error, match="extent"):
        theory.RandomRound(0, [])


def test_costs():
    net = subfed.models.preresnet18()
    half = subfed.draw(net, subfed.Prefix(), capacity=0.5)
    assert subfed.parameters(half) == 2796714
    assert subfed.traffic(half) == (4 * 2796714, 4 * 2796714)
    down, up = subfed.traffic(half, lists="sent_down", index_bytes=2)
    assert up == 4 * 2796714 and down > up
    sizes = {t.name: 2 for t in net.tensors}
    assert subfed.traffic(half, element_bytes=sizes)[0] == 2 * 2796714
    lenet = subfed.Model()
    a = lenet.group("a", 4)
    conv = lenet.conv2d("conv", 1, a, 3)
    fc = lenet.linear("fc", subfed.flatten(a, 9), 2)
    work = subfed.Workload(lenet).convolution(conv, 36).pooling(a, 36).linear(fc)
    full = subfed.Submodel.full(lenet)
    assert work.counts(full) == [36 * 36, 0, 72] and work.count(full) == 36 * 36 + 72
    assert work.count(full, "feddrop_tables") == 36 * 40 + 144 + 74
    assert work.count(full, {"linear": 2, "convolution": 0}) == 144
    assert work.features(full) == 4 * 36 + 2
    with pytest.raises(subfed.Error, match="the cost rule is 'flops'"):
        work.count(full, "flops")
