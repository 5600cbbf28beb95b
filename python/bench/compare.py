# SPDX-License-Identifier: MIT
"""Cutting ten clients out of PreResNet18 and averaging them back, in one run: this package, and what people
write today with numpy and torch. One thread.

    PYTHONPATH=build/release/python/package python3 python/bench/compare.py [--native PROGRAM] [--runs 7]

--native names the program of python/tests/native.cpp, which does the same in C++, in turns with Python. A time is
that of the processor, the median of so many runs; all ways take turns. All give the same numbers; that is checked
first.
"""
import argparse
import subprocess
import time

import numpy as np
import torch

import subfed

NET = subfed.models.preresnet18()
NAMES = [t.name for t in NET.tensors]
SCHEMES = {"rolling": subfed.Rolling(), "random": subfed.RandomSubset()}
COHORTS = {name: [subfed.draw(NET, scheme, seed=7, round=17, client=c, capacity=1 / (1 << c % 5))
                  for c in range(10)] for name, scheme in SCHEMES.items()}
SUBS = COHORTS["rolling"]


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


def seconds(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin


class Native:
    """The program in C++, which does one thing at a time."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "time"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, verb, scheme):
        self.process.stdin.write(f"{verb} {scheme}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def beside_native(program, runs):
    """The same calls in C++ and in Python, in turns: medians, and the median of the ratios."""
    native = Native(program)
    print(f"{'beside C++, ms':40s}{'C++':>9s}{'Python':>9s}{'ratio':>9s}")
    for scheme, subs in COHORTS.items():
        for kind in ("torch", "numpy"):
            server = server_of(kind)
            parts = [subfed.slice(server, sub) for sub in subs]
            calls = {"slice": lambda: [subfed.slice(server, sub, out=p) for sub, p in zip(subs, parts)],
                     "average": lambda: subfed.average_cohort(NET, zip(subs, parts), server)}
            for verb, call in calls.items():
                pairs = []
                for run in range(runs + 3):
                    both = [lambda: native.seconds(verb, scheme), lambda: seconds(call)]
                    order = (0, 1) if run % 2 else (1, 0)
                    took = {i: both[i]() for i in order}
                    pairs.append((took[0], took[1]))
                pairs = np.array(pairs[3:])
                cpp, python = np.median(pairs, 0) * 1000
                ratio = np.median(pairs[:, 1] / pairs[:, 0])
                print(f"{f'{verb}, {scheme}, {kind}':40s}{cpp:9.2f}{python:9.2f}{ratio:9.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--native")
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    ways = {"subfed, torch": Package("torch"), "subfed, numpy": Package("numpy"), "numpy.ix_": NumpyIx(),
            "numpy, loop over rows": NumpyRows(), "torch, index operators": TorchIndex(),
            "torch, the released code's way": ReleasedWay()}
    expected, calls = None, {}
    for name, way in ways.items():
        server = server_of(way.kind)
        factors = [1 + c / 8 for c in range(10)]
        locals_ = [{k: v * np.float32(f) if way.kind == "numpy" else v * f for k, v in part.items()}
                   for part, f in zip(way.cut(server), factors)]
        way.average(server, locals_)
        got = np.concatenate([np.asarray(server[k]).reshape(-1) for k in NAMES])
        expected = got if expected is None else expected
        assert np.array_equal(got, expected), name
        calls[name] = (lambda way=way, server=server: way.cut(server),
                       lambda way=way, server=server, parts=locals_: way.average(server, parts))
    times = {name: ([], []) for name in calls}
    for _ in range(given.runs):
        for name, (cut, average) in calls.items():
            times[name][0].append(seconds(cut))
            times[name][1].append(seconds(average))
    print(f"{'PreResNet18, 10 clients, rolling, ms':40s}{'cut':>9s}{'average':>9s}")
    for name, both in times.items():
        cut, average = (1000 * np.median(t) for t in both)
        print(f"{name:40s}{cut:9.1f}{average:9.1f}")
    if given.native:
        print()
        beside_native(given.native, 4 * given.runs)


if __name__ == "__main__":
    with torch.no_grad():
        main()
