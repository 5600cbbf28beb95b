# SPDX-License-Identifier: MIT
"""Cutting ten clients out of PreResNet18 and averaging them back, in one run: this package, and what people
write today with numpy and torch. One thread.

    PYTHONPATH=build/release/python/package python3 python/bench/compare.py [--native PROGRAM] [--runs 7]

--native names the program of python/tests/native.cpp, which does the same in C++. A time is that of the
processor, the least of so many runs. All ways give the same numbers; that is checked first.
"""
import argparse
import subprocess
import time

import numpy as np
import torch

import subfed

NET = subfed.models.preresnet18()
NAMES = [t.name for t in NET.tensors]
SUBS = [subfed.draw(NET, subfed.Rolling(), seed=7, round=17, client=c, capacity=1 / (1 << c % 5))
        for c in range(10)]


def server_of(kind):
    """Tensors in [0, 1), the same for all ways."""
    made = np.random.default_rng(1)
    arrays = {t.name: made.random(t.shape, np.float32) for t in NET.tensors}
    return arrays if kind == "numpy" else {k: torch.from_numpy(v) for k, v in arrays.items()}


def nodes_of(sub):
    """For each tensor the nodes of each of its dimensions, which bind one group or none."""
    out = {}
    for t in NET.tensors:
        words = [w for w in t.bound_to.strip("()").split(", ")]
        out[t.name] = [np.arange(e) if w.rstrip(",").isdigit() else sub[w.rstrip(",")].numpy()
                       for e, w in zip(t.shape, words)]
    return out


NODES = [nodes_of(sub) for sub in SUBS]


class Package:
    def __init__(self, kind):
        self.kind = kind

    def cut(self, server):
        return [subfed.slice(server, sub) for sub in SUBS]

    def average(self, server, locals_):
        subfed.average_cohort(NET, zip(SUBS, locals_), server)


class NumpyIx:
    """numpy.ix_ and +=, sums and counts of the whole model."""
    kind = "numpy"

    def cut(self, server):
        return [{k: server[k][np.ix_(*nodes[k])] for k in NAMES} for nodes in NODES]

    def average(self, server, locals_):
        for k in NAMES:
            total, count = np.zeros(server[k].shape, np.float64), np.zeros(server[k].shape, np.float32)
            for nodes, local in zip(NODES, locals_):
                at = np.ix_(*nodes[k])
                total[at] += local[k]
                count[at] += 1
            held = count > 0
            server[k][held] = (total[held] / count[held]).astype(np.float32)


class NumpyRows:
    """A loop over rows, as one writes it first: row by row, columns by their indices."""
    kind = "numpy"

    def cut(self, server):
        out = []
        for nodes in NODES:
            part = {}
            for k in NAMES:
                at, v = nodes[k], server[k]
                if v.ndim == 1:
                    part[k] = v[at[0]]
                    continue
                part[k] = np.empty([len(n) for n in at], v.dtype)
                for to, row in enumerate(at[0]):
                    part[k][to] = v[row][at[1]]
            out.append(part)
        return out

    def average(self, server, locals_):
        for k in NAMES:
            v = server[k]
            total, count = np.zeros(v.shape, np.float64), np.zeros(v.shape[:2], np.float32)
            for nodes, local in zip(NODES, locals_):
                at = nodes[k]
                if v.ndim == 1:
                    total[at[0]] += local[k]
                    count[at[0]] += 1
                    continue
                for to, row in enumerate(at[0]):
                    total[row][at[1]] += local[k][to]
                    count[row][at[1]] += 1
            count = count.reshape(count.shape + (1,) * (v.ndim - count.ndim))
            v[...] = np.where(count > 0, total / np.maximum(count, 1), v)


class TorchIndex:
    """index_select and index_add_: torch's own operators, written with care."""
    kind = "torch"

    def __init__(self):
        self.nodes = [{k: [torch.from_numpy(n) for n in nodes[k]] for k in NAMES} for nodes in NODES]

    def cut(self, server):
        out = []
        for nodes in self.nodes:
            part = {}
            for k in NAMES:
                v = server[k].index_select(0, nodes[k][0])
                part[k] = v.index_select(1, nodes[k][1]) if v.dim() > 1 else v
            out.append(part)
        return out

    def average(self, server, locals_):
        for k in NAMES:
            v = server[k]
            total, count = torch.zeros(v.shape, dtype=torch.float64), torch.zeros(v.shape[:2])
            for nodes, local in zip(self.nodes, locals_):
                at = nodes[k]
                if v.dim() == 1:
                    total.index_add_(0, at[0], local[k].double())
                    count.index_add_(0, at[0], torch.ones(len(at[0])))
                    continue
                at = (at[0][:, None], at[1][None, :])
                total.index_put_(at, local[k].double(), accumulate=True)
                count.index_put_(at, torch.ones(local[k].shape[:2]), accumulate=True)
            count = count.reshape(count.shape + (1,) * (v.dim() - count.dim()))
            v.copy_(torch.where(count > 0, (total / count.clamp(min=1)).float(), v))


class ReleasedWay:
    """As the code released with FedRolex goes about it, written anew: a mesh of indices for each tensor,
    sums and counts of the whole model, masks of what is held."""
    kind = "torch"

    def mesh(self, nodes, k):
        return torch.meshgrid(*[torch.from_numpy(n) for n in nodes[k][:2]], indexing="ij")

    def cut(self, server):
        return [{k: server[k][self.mesh(nodes, k)].clone() for k in NAMES} for nodes in NODES]

    def average(self, server, locals_):
        for k in NAMES:
            v = server[k]
            total, count = torch.zeros(v.shape, dtype=torch.float64), torch.zeros(v.shape)
            for nodes, local in zip(NODES, locals_):
                at = self.mesh(nodes, k)
                total[at] += local[k]
                count[at] += 1
            held = count > 0
            v[held] = (total[held] / count[held]).float()


def least(runs, call):
    times = []
    for _ in range(runs):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--native")
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    ways = {"subfed, torch": Package("torch"), "subfed, numpy": Package("numpy"), "numpy.ix_": NumpyIx(),
            "numpy, loop over rows": NumpyRows(), "torch, index operators": TorchIndex(),
            "torch, the released code's way": ReleasedWay()}
    expected = None
    rows = []
    for name, way in ways.items():
        server = server_of(way.kind)
        factors = [1 + c / 8 for c in range(10)]
        with torch.no_grad():
            locals_ = [{k: v * np.float32(f) if way.kind == "numpy" else v * f for k, v in part.items()}
                       for part, f in zip(way.cut(server), factors)]
            way.average(server, locals_)
            got = np.concatenate([np.asarray(server[k]).reshape(-1) for k in NAMES])
            expected = got if expected is None else expected
            assert np.array_equal(got, expected), name
            runs = given.runs * 4 if name.startswith("subfed") else given.runs
            rows.append((name, least(runs, lambda: way.cut(server)),
                         least(runs, lambda: way.average(server, locals_))))
            if name.startswith("subfed"):  # as in C++, where the clients' tensors are there already
                rows.append((name + ", into given tensors", least(runs, lambda: [
                    subfed.slice(server, sub, out=part) for sub, part in zip(SUBS, locals_)]), None))
    if given.native:
        runs = [subprocess.run([given.native, "time"], check=True, capture_output=True, text=True).stdout
                for _ in range(3)]
        rows.insert(0, ("C++, into given tensors", *np.min([list(map(float, r.split())) for r in runs], 0)))
    print(f"{'PreResNet18, 10 clients, ms':40s}{'cut':>9s}{'average':>9s}")
    for name, cut, average in rows:
        print(f"{name:40s}{1000 * cut:9.1f}{'' if average is None else f'{1000 * average:9.1f}':>9s}")


if __name__ == "__main__":
    main()
