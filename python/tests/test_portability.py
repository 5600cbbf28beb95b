# SPDX-License-Identifier: MIT
"""The same bits as C++: hashes of tests/portability/results.txt, which C++ computed on other machines."""
import functools
import pathlib

import numpy as np
import pytest

import subfed

TABLE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "portability" / "results.txt"
EXPECTED = dict(line.split() for line in TABLE.read_text().splitlines())


PRIME, MASK = 0x100000001B3, 2**64 - 1


class Digest:
    """FNV-1a over words of 64 bits, the lowest byte first."""

    def __init__(self):
        self.hash = 0xCBF29CE484222325

    def words(self, values):
        """Values of 1 to 8 bytes, as words of 8: their upper bytes are zeros, which multiply alone."""
        values = np.ascontiguousarray(values).reshape(-1)
        last = pow(PRIME, 9 - values.itemsize, 2**64)
        hash = self.hash
        for head in zip(*[iter(values.astype(values.dtype.newbyteorder("<")).tobytes())] * values.itemsize):
            for byte in head[:-1]:
                hash = (hash ^ byte) * PRIME & MASK
            hash = (hash ^ head[-1]) * last & MASK
        self.hash = hash

    def number(self, value):
        self.words(np.uint64(value % 2**64))

    def bits(self, values):
        """Elements by their bits, whatever their width."""
        values = np.ascontiguousarray(values).reshape(-1)
        self.words(values.view(f"u{values.itemsize}"))

    def all(self, values):
        self.number(values.size)
        self.bits(values)

    def set(self, nodes):
        self.words(np.array([nodes.extent, len(nodes), *nodes], np.uint16))

    def value(self):
        return f"{self.hash:016x}"


class Numbers:
    """SplitMix64, as results.cpp has it."""

    def __init__(self, state):
        self.state = state

    def words(self, n):
        with np.errstate(over="ignore"):
            z = np.uint64(self.state) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            self.state = (self.state + n * 0x9E3779B97F4A7C15) % 2**64
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            return z ^ (z >> np.uint64(31))

    def word(self):
        return int(self.words(1)[0])

    def unit(self):
        return (self.word() >> 11) * 2.0**-53

    def below(self, n):
        return self.word() % n

    def within(self, low, width):
        return low + width * self.unit()

    def values(self, n):
        return (self.words(n).view(np.int64) >> 11) * 2.0**-52


def model():
    net = subfed.Model()
    a, b = net.group("a", 60), net.group("b", 24)
    net.tensor("rows", [a, 41])
    net.tensor("conv", [b, a, 3, 3])
    net.tensor("gates", [b.repeat(4), a])
    net.tensor("bias", [b])
    return net


NET = model()
TENSORS = [t.name for t in NET.tensors]


def float32_pairs(values):
    """bfloat16 as results.cpp converts: rounded to nearest, ties to even, from double."""
    torch = pytest.importorskip("torch")
    exact = values.astype(np.float32)  # the hashes are those of one rounding: correct it where two differ
    bits = exact.view(np.uint32)
    low = bits & np.uint32(0xFFFF)
    # A double that lies beside a tie which float hides is moved off it.
    tie = low == 0x8000
    beside = np.sign(np.abs(values) - np.abs(exact.astype(np.float64))).astype(np.int64)
    bits = (bits.astype(np.int64) + np.where(tie, beside, 0)).astype(np.uint32)
    return torch.from_numpy(bits.view(np.float32).copy()).to(torch.bfloat16)


KINDS = {"float": lambda v: v.astype(np.float32), "double": lambda v: v,
         "half": lambda v: v.astype(np.float16), "bfloat16": float32_pairs}


def seen(array):
    """The elements of an array or tensor, as numpy has them."""
    return array if isinstance(array, np.ndarray) else array.view(__import__("torch").int16).numpy()


def arrays(kind, sub, random):
    return [KINDS[kind](random.values(int(np.prod(s)))).reshape(s) for s in sub.shapes.values()]


def drawn(kind, client, round):
    scheme = [subfed.Rolling(client_phase=2), subfed.RandomSubset(), subfed.Prefix()][kind]
    return subfed.draw(NET, scheme, seed=11, round=round, client=client,
                       capacity=subfed.Capacity.ratio(client % 4 + 1, 4))


def cohort(element, kind, round, random):
    out = []
    for client in range(7):
        sub = drawn(kind, client, round)
        tensors = arrays(element, sub, random)
        out.append((sub, tensors, 1 if client == 3 else 0.01 + random.unit()))
    return out


def enter(digest, tensors):
    for t in tensors:
        digest.all(seen(t))


def copy(tensors):
    return [t.copy() if isinstance(t, np.ndarray) else t.clone() for t in tensors]


OPTIONS = [dict(divide_by=d, content=c, step=s) for d in ("holders", "cohort")
           for c in ("parameters", "deltas") for s in (1.0, 0.3)] + [dict(on_non_finite="skip_element")]


@functools.lru_cache
def averages(element):
    one_pass, streaming, random = Digest(), Digest(), Numbers(17)
    for kind in range(3):
        for options in OPTIONS:
            clients = cohort(element, kind, 2, random)
            server = arrays(element, subfed.Submodel.full(NET), random)
            again = copy(server)
            subfed.average_cohort(NET, clients, server, **options)
            enter(one_pass, server)
            mean, shard = (subfed.SelectiveAverage(NET, **options) for _ in range(2))
            for client, update in enumerate(clients):
                (mean if client < 4 else shard).add(*update)
            mean.merge(shard)
            mean.finish(again)
            enter(streaming, again)
    return one_pass.value(), streaming.value()


@pytest.mark.parametrize("element", KINDS)
def test_averages_in_one_pass_and_streaming(element):
    assert averages(element) == (EXPECTED[f"average.{element}"], EXPECTED[f"streaming.{element}"])


@pytest.mark.parametrize("element", ["float", "half", "double"])
def test_copies(element):
    out, random = Digest(), Numbers(23)
    for kind in range(3):
        for client in range(4):
            server = arrays(element, subfed.Submodel.full(NET), random)
            sub = drawn(kind, client, 5)
            arrays(element, sub, random)  # what slice writes over
            subfed.scatter(arrays(element, sub, random), sub, server)
            enter(out, server)
            enter(out, subfed.slice(server, sub))
    assert out.value() == EXPECTED[f"copies.{element}"]


def test_sets_of_all_schemes():
    out, random = Digest(), Numbers(5)
    for i in range(400):
        seed = random.word()
        round = random.word() if i % 2 == 0 else i
        client = random.word() if i % 3 == 0 else i % 7
        group = "layer1.0.conv1" if i % 2 == 0 else "h\u00fclle"
        extent = 1 + random.below(200)
        where = subfed.DrawRequest(seed, round, client, group, extent, random.within(0.001, 0.99))
        out.set(subfed.Rolling()(where))
        out.set(subfed.Rolling.released()(where))
        out.set(subfed.Rolling(window_overlap=random.unit())(where))
        out.set(subfed.Rolling(step=-3, phase=5, client_phase=1000003)(where))
        policies = subfed.SeedPolicy
        for seeds in (policies.per_client_and_round(), policies.per_client(), policies.pool(5),
                      policies.shared(3)):
            out.set(subfed.RandomSubset(seeds, "nearest")(where))
        out.set(subfed.Prefix()(where))
        out.set(subfed.Prefix.ordered()(where))
        where = subfed.DrawRequest(seed, round, client, group, 96,
                                   subfed.Capacity.ratio(1, 1 << i % 5))
        out.set(subfed.SimpleEnsemble(advance=i)(where))
    assert out.value() == EXPECTED["schemes"]


def test_merged_integers():
    out = Digest()
    for rule in ("max", "sum"):
        net = subfed.Model()
        net.tensor("count", [net.group("g", 40)])
        random, updates = Numbers(31), []
        for client in range(5):
            sub = subfed.draw(net, subfed.RandomSubset(), client=client, capacity=0.5)
            own = np.array([random.below(2**59) for _ in range(20)], np.int64)
            updates.append((sub, [own]))
        server = np.full(40, 3, np.int64)
        subfed.average_cohort(net, updates, [server], integers=rule)
        out.all(server)
    assert out.value() == EXPECTED["integers"]


@pytest.mark.parametrize("name, make", [
    ("sgd", lambda: subfed.ServerSGD(NET, 0.7, 0.9)),
    ("adagrad", lambda: subfed.ServerAdagrad(NET, beta1=0.3)), ("adam", lambda: subfed.ServerAdam(NET)),
    ("yogi", lambda: subfed.ServerYogi(NET))])
def test_server_optimisers(name, make):
    out, random = Digest(), Numbers(37)
    server = arrays("float", subfed.Submodel.full(NET), random)
    optimizer = make()
    for round in range(4):
        clients = cohort("float", 1, round, random)
        optimizer.begin(server)
        subfed.average_cohort(NET, clients, server)
        optimizer.finish(subfed.HeldElements.of(NET, [c[0] for c in clients]), server)
        enter(out, server)
        for t in TENSORS:
            out.bits(optimizer.first_moment(t))
            out.bits(optimizer.second_moment(t))
    assert out.value() == EXPECTED[f"optimizer.{name}"]


def test_cohorts():
    out, random = Digest(), Numbers(61)
    for _ in range(60):
        clients = 20 + random.below(3000)
        participation = (0.5 + 1 + random.below(9)) / clients
        mix = [(subfed.Capacity.ratio(c, 7), 0.01 + random.unit()) for c in range(1, 8)]
        population = subfed.CohortModel(clients=clients, participation=participation, dropout=0.1, mix=mix)
        out.number(population.asked)
        for round in range(3):
            for member in population.members(round):
                out.number(member.client)
                out.bits(np.float64(member.capacity.value))
    assert out.value() == EXPECTED["cohorts"]
