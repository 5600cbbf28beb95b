# SPDX-License-Identifier: MIT
"""Averages, their options and reports, server optimisers, threads."""
import decimal
import fractions
import sys
import threading
import time

import numpy as np
import pytest

import subfed

NET = subfed.models.mlp([3, 8, 2])


def server(value=0.0):
    return {t.name: np.full(t.shape, value, np.float32) for t in NET.tensors}


def cohort(round=0, values=(1, 3, 5)):
    out = []
    for client, value in enumerate(values):
        sub = subfed.draw(NET, subfed.Rolling(client_phase=2), round=round, client=client, capacity=0.5)
        out.append((sub, {k: np.full(s, value, np.float32) for k, s in sub.shapes.items()}))
    return out


def same(a, b):
    return all(np.array_equal(a[k], b[k], equal_nan=True) for k in b)


def test_the_aggregator_over_raw_memory_prints_the_same_in_python():
    net = subfed.Model()
    hidden = net.group("hidden", 6)
    net.tensor("fc1.weight", [hidden, 2])
    net.tensor("fc2.weight", [3, hidden])
    to = [np.zeros((6, 2), np.float32), np.zeros((3, 6), np.float32)]
    mean = subfed.SelectiveAverage(net)
    for client in range(3):
        sub = subfed.draw(net, subfed.Rolling(client_phase=1), seed=1, round=2, client=client,
                          capacity=0.5)
        mean.add(sub, [np.full(sub.shape(t), 1 + client, np.float32)
                       for t in ("fc1.weight", "fc2.weight")], 100 * (1 + client))
    report = mean.finish(to)
    assert (report.clients, report.held, report.unheld) == (3, 25, 5)
    assert [f"{x:.3f}" for x in to[1][0]] == ["3.000", "0.000", "1.000", "1.667", "2.333", "2.600"]


def test_an_update_is_kept_while_its_tensors_are_asked_for():
    class Client:
        def __init__(self, row, tensors):
            self.row, self.tensors = row, tensors

        def state_dict(self):
            self.row[0] = None  # nobody else has the submodel
            return self.tensors

    expected, to = server(), server()
    subfed.average_cohort(NET, cohort(), expected)
    rows = [list(row) for row in cohort()]
    for row in rows:
        row[1] = Client(row, row[1])
    subfed.average_cohort(NET, rows, to)
    assert same(to, expected)


def test_streaming_and_one_pass_give_the_same_and_say_what_is_held():
    one, other, held = server(), server(), subfed.HeldElements(NET)
    report = subfed.average_cohort(NET, cohort(), one, held=held)
    left, right = subfed.SelectiveAverage(NET), subfed.SelectiveAverage(NET)
    for i, (sub, tensors) in enumerate(cohort()):
        assert (left if i else right).add(sub, tensors)
    left.merge(right)
    assert left.held() == held and left.report.clients == 3
    assert left.finish(other) == report and same(one, other)
    assert held.count() == report.held and held.test("fc1.bias", 7)
    assert np.array_equal(held.mask("fc1.weight"), one["fc1.weight"] > 0)
    assert held == subfed.HeldElements.of(NET, [sub for sub, _ in cohort()])
    left.clear()
    left.finish(other)
    assert left.report.clients == 0 and "0 updates" in repr(left)
    assert "held=" in repr(report)


def test_updates_may_come_from_a_generator_in_any_order_on_any_threads():
    expected = server()
    subfed.average_cohort(NET, cohort(), expected)
    for threads in (1, 2, 5, 0):
        got = server()
        subfed.average_cohort(NET, (u for u in reversed(cohort())), got, threads=threads)
        assert same(got, expected)
    for bad in (-1, 5000):
        with pytest.raises(subfed.Error, match="threads are asked for"):
            subfed.average_cohort(NET, cohort(), server(), threads=bad)


def test_divisors_deltas_and_steps():
    got = server(10)
    subfed.average_cohort(NET, cohort(), got, content="deltas", divide_by="cohort", step=0.5)
    expected = server(10)
    for sub, tensors in cohort():
        n = sub["hidden1"].numpy()
        expected["fc1.weight"][n] += tensors["fc1.weight"] / 3 / 2
    assert np.allclose(got["fc1.weight"], expected["fc1.weight"])


def test_weights():
    sub = subfed.Submodel.full(NET)
    updates = [(sub, {k: v + i for k, v in server().items()}, w) for i, w in enumerate([1, 3, 0])]
    got = server()
    subfed.average_cohort(NET, updates, got)
    assert (got["fc2.bias"] == 0.75).all()
    for bad in (-1, float("nan"), float("inf")):
        with pytest.raises(subfed.Error, match="weight") as caught:
            subfed.average_cohort(NET, [(sub, server(), bad)], got)
        assert caught.value.client == 0


def test_what_is_no_number_is_refused_by_its_name():
    for wrong, says in (("1", "the weight of client 1 is given as 'str', expected a number"),
                        (None, "the weight of client 1 is given as 'NoneType', expected a number"),
                        (1j, "the weight of client 1 is given as 'complex', expected a number")):
        updates = [(*u, wrong) if i == 1 else u for i, u in enumerate(cohort())]
        with pytest.raises(TypeError, match=says):
            subfed.average_cohort(NET, updates, server())
    with pytest.raises(subfed.Error, match="the weight of client 0 is more than a double can hold"):
        subfed.average_cohort(NET, [(*cohort()[0], 10**400)], server())
    with pytest.raises(TypeError, match="the step is given as 'str', expected a number"):
        subfed.average_cohort(NET, [], server(), step="1")
    with pytest.raises(TypeError, match="divide_by is given as 'int', expected text"):
        subfed.average_cohort(NET, [], server(), divide_by=3)
    with pytest.raises(TypeError, match="the late_weight of 2 rounds passed is given as 'str', expected a number"):
        subfed.average_cohort(NET, cohort(round=1), server(), round=3, on_late="weigh",
                              late_weight=lambda passed: "half")
    with pytest.raises(ZeroDivisionError):
        subfed.average_cohort(NET, cohort(round=1), server(), round=3, on_late="weigh",
                              late_weight=lambda passed: 1 / 0)
    for weight in (True, np.float32(2), fractions.Fraction(1, 3), decimal.Decimal("0.5"), 3):
        assert subfed.average_cohort(NET, [(*cohort()[0], weight)], server()).held > 0


def test_values_that_are_not_finite():
    updates = cohort()
    updates[1][1]["fc1.weight"][0, 0] = np.nan
    got, before = server(7), server(7)
    with pytest.raises(subfed.Error, match="fc1.weight") as caught:
        subfed.average_cohort(NET, updates, got, on_non_finite="refuse")
    assert (caught.value.client, caught.value.tensor) == (1, "fc1.weight")
    assert same(got, before)
    report = subfed.average_cohort(NET, updates, got, on_non_finite="skip_client")
    assert report.skipped_clients == 1
    (outcome,) = report.left_out
    assert (outcome.fate, outcome.client, outcome.tensor) == ("non_finite", 1, "fc1.weight")
    assert not outcome and "non_finite" in repr(outcome)
    assert subfed.average_cohort(NET, updates, got, on_non_finite="skip_element").skipped_elements == 1


def test_rounds():
    late, now = cohort(round=4), cohort(round=5)
    mean = subfed.SelectiveAverage(NET, round=5, on_late="skip", on_repeated="skip")
    assert mean.add(*now[0])
    assert mean.add(*now[0]).fate == "repeated"
    assert mean.add(*late[1]).fate == "late"
    assert mean.add(*cohort(round=6)[2]).fate == "early"
    with pytest.raises(subfed.Error, match="round") as caught:
        subfed.average_cohort(NET, late, server(), round=5)
    assert caught.value.client == 0


def test_late_updates_are_weighed_by_a_function():
    asked = []

    def fade(passed):
        asked.append(passed)
        return 1 / (1 + passed)

    updates = [*cohort(round=5)[:1], *cohort(round=2)[1:2]]
    mean = subfed.SelectiveAverage(NET, round=5, on_late="weigh", late_weight=fade)
    assert [mean.add(*u).weight for u in updates] == [1, 0.25]
    one, other = server(), server()
    mean.finish(one)
    subfed.average_cohort(NET, updates, other, round=5, on_late="weigh", late_weight=fade)
    assert same(one, other) and asked == [3, 3]
    with pytest.raises(ZeroDivisionError):
        subfed.average_cohort(NET, updates, other, round=5, on_late="weigh",
                              late_weight=lambda passed: 1 / 0)
    with pytest.raises(subfed.Error, match="late_weight"):
        subfed.SelectiveAverage(NET, round=5, on_late="weigh")
    with pytest.raises(subfed.Error, match="other options"):
        mean.merge(subfed.SelectiveAverage(NET, round=5, on_late="weigh", late_weight=lambda p: 1))


def test_options_are_checked():
    with pytest.raises(TypeError, match="no option 'setp'"):
        subfed.average_cohort(NET, [], server(), setp=1)
    with pytest.raises(subfed.Error, match="content is 'gradients', expected one of 'parameters', 'deltas'"):
        subfed.SelectiveAverage(NET, content="gradients")
    with pytest.raises(subfed.Error, match="step"):
        subfed.SelectiveAverage(NET, step=float("nan"))


def test_submodels_of_other_models_are_refused():
    other = subfed.models.mlp([3, 9, 2])
    sub = subfed.draw(other, subfed.Rolling(), client=4)
    tensors = {k: np.zeros(s, np.float32) for k, s in sub.shapes.items()}
    for call in (lambda: subfed.average_cohort(NET, [(sub, tensors)], server()),
                 lambda: subfed.SelectiveAverage(NET).add(sub, tensors)):
        with pytest.raises(subfed.Error, match="client 4 is of another model") as caught:
            call()
        assert caught.value.client == 4
    with pytest.raises(subfed.Error, match="another model"):
        subfed.SelectiveAverage(NET).merge(subfed.SelectiveAverage(other))


def test_no_updates_change_nothing():
    got = server(3)
    assert subfed.average_cohort(NET, [], got).held == 0
    assert same(got, server(3))


def test_classes_that_a_client_lacks():
    full = subfed.Submodel.full(NET)
    got = server()
    subfed.average_cohort(NET, [(full.restricted("classes", [0]), server(2)),
                                (full.restricted("classes", [0, 1]), server(4))], got)
    assert got["fc2.bias"].tolist() == [3, 4]


@pytest.mark.parametrize("make", [
    lambda: subfed.ServerSGD(NET, lr=0.5, momentum=0.9), lambda: subfed.ServerAdagrad(NET),
    lambda: subfed.ServerAdam(NET), lambda: subfed.ServerYogi(NET, lr=0.03)])
def test_server_optimisers_move_what_is_held(make):
    optimiser, got = make(), server(1)
    optimiser.begin(got)
    held = subfed.HeldElements(NET)
    subfed.average_cohort(NET, cohort(values=[2]), got, held=held)
    report = optimiser.finish(held, got)
    assert (report.moved, report.still) == (held.count(), NET.size - held.count())
    moved = held.mask("fc1.weight")
    assert (got["fc1.weight"][~moved] == 1).all() and (got["fc1.weight"][moved] > 1).all()
    m = optimiser.first_moment("fc1.weight")
    assert m.shape == (8, 3) and np.array_equal(m > 0, moved)
    m[...] = 0  # the memory itself: what a checkpoint puts back
    assert (optimiser.first_moment("fc1.weight") == 0).all()
    with pytest.raises(subfed.Error, match="without begin"):
        optimiser.finish(held, got)
    with pytest.raises(subfed.Error):
        subfed.ServerSGD(NET, momentum=2)


def test_moments_outlive_their_optimiser():
    m = subfed.ServerAdam(NET).second_moment("fc1.bias")
    assert m.sum() > 0


def test_the_gil_is_released():
    net = subfed.Model()
    net.tensor("t", [net.group("g", 4_000_000)])
    full, to = subfed.Submodel.full(net), [np.zeros(4_000_000)]
    updates = [(full, [np.ones(4_000_000)]) for _ in range(4)]
    mean = subfed.SelectiveAverage(net)
    mean.add(full, to)
    sgd, held = subfed.ServerSGD(net), subfed.HeldElements.of(net, [full])
    sgd.begin(to)
    small = subfed.Model()
    small.tensor("t", [small.group("g", 200_000)])
    for call in (lambda: subfed.slice(to, full, out=updates[0][1]),
                 lambda: subfed.scatter(updates[0][1], full, to), lambda: subfed.scatter_add(updates[0][1], full, to),
                 lambda: subfed.average_cohort(net, updates, to), lambda: mean.add(full, to),
                 lambda: mean.finish(to), lambda: sgd.begin(to), lambda: sgd.finish(held, to),
                 lambda: subfed.node_norms(small, [to[0][:200_000]]), lambda: subfed.random_values(small)):
        ticks, done = [], threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.perf_counter())
                time.sleep(0.0002)

        # Nobody takes the GIL from a thread then: the other runs when this one gives it up.
        other, interval = threading.Thread(target=tick), sys.getswitchinterval()
        other.start()
        sys.setswitchinterval(1000)
        try:
            for _ in range(200):
                begin = time.perf_counter()
                call()
                end = time.perf_counter()
                if any(begin < t < end for t in ticks):
                    break
                time.sleep(0.001)
            else:
                pytest.fail("the other thread never ran during a call")
        finally:
            sys.setswitchinterval(interval)
            done.set()
            other.join()


def test_several_threads_may_add_to_one_average_and_average_side_by_side():
    mean, expected = subfed.SelectiveAverage(NET), server()
    subfed.average_cohort(NET, cohort() * 40, expected)
    alone = [server() for _ in range(4)]

    def work(i):
        for _ in range(10):
            for update in cohort():
                mean.add(*update)
            subfed.average_cohort(NET, cohort() * 40, alone[i])

    team = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in team:
        t.start()
    for t in team:
        t.join()
    got = server()
    assert mean.finish(got).clients == 120
    assert same(got, expected) and all(same(a, expected) for a in alone)
