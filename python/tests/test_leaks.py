# SPDX-License-Identifier: MIT
"""Ten thousand calls of every entry point that takes tensors leave no memory, no block and no reference; a quarter
of that under the address sanitizer, which counts every byte."""
import ctypes
import gc
import pickle
import sys

import numpy as np
import pytest

import subfed
from capsules import Producer

CALLS = 2500 if hasattr(ctypes.CDLL(None), "__asan_init") else 10000

NET = subfed.Model()
NET.tensor("t", [NET.group("g", 2)])
FULL, HALF = subfed.Submodel.full(NET), subfed.draw(NET, subfed.Prefix(), capacity=0.5)
ONE, TWO = np.ones(1, np.float32), np.ones(2, np.float32)
SERVER = np.zeros(2, np.float32)
WRONG = np.ones(3, np.float32)
SCORES = subfed.node_norms(NET, [TWO])
MEAN, SGD = subfed.SelectiveAverage(NET), subfed.ServerSGD(NET)
SGD.begin([SERVER])
HELD = subfed.HeldElements.of(NET, [FULL])
BYTES, TEXT, STATE = HALF.to_bytes(), NET.to_json(), pickle.dumps(HALF)
SEEN = subfed.Coverage(NET)


def heap():
    """Bytes that C and C++ hold: exact under the address sanitizer, and with glibc 2.33."""
    own = ctypes.CDLL(None)
    if hasattr(own, "__sanitizer_get_current_allocated_bytes"):
        own.__sanitizer_get_current_allocated_bytes.restype = ctypes.c_size_t
        return own.__sanitizer_get_current_allocated_bytes()
    if not hasattr(own, "mallinfo2"):
        return 0

    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]

    own.mallinfo2.restype = Info
    info = own.mallinfo2()
    return info.e + info.h  # in blocks and in mappings of their own


def counts():
    gc.collect()
    return [sys.getrefcount(x) for x in (ONE, TWO, SERVER, WRONG, NET, FULL, HALF, SCORES, MEAN, SGD, HELD)]


def network(t):
    return t["t"] * 3


def stream():
    MEAN.clear()
    MEAN.add(FULL, [TWO])
    MEAN.finish([SERVER])


def merge():
    other = subfed.SelectiveAverage(NET)
    other.merge(MEAN)
    return other.report


def deleted(producer, call):
    call(producer)
    assert producer.deleted == 1


def later(passed):
    return 0.5


CALLED = {
    "slice": lambda: subfed.slice([TWO], HALF),
    "slice_by_name": lambda: subfed.slice({"t": TWO}, HALF),
    "slice_out": lambda: subfed.slice([TWO], FULL, out=[SERVER]),
    "scatter": lambda: subfed.scatter([ONE], HALF, [SERVER]),
    "scatter_add": lambda: subfed.scatter_add([ONE], HALF, [SERVER], 2),
    "average_cohort": lambda: subfed.average_cohort(NET, [(FULL, [TWO]), (HALF, [ONE], 2)], [SERVER]),
    "average_late": lambda: subfed.average_cohort(NET, [(FULL, [TWO])], [SERVER], round=3, on_late="weigh",
                                                  late_weight=later),
    "average_held": lambda: subfed.average_cohort(NET, [(FULL, [TWO])], [SERVER],
                                                  held=subfed.HeldElements(NET)),
    "SelectiveAverage": stream,
    "merge": merge,
    "held": lambda: (MEAN.held().count(), MEAN.held().mask("t")),
    "optimizer": lambda: (SGD.begin([SERVER]), SGD.finish(HELD, [SERVER]), SGD.first_moment("t")),
    "node_norms": lambda: subfed.TopK(subfed.node_norms(NET, [TWO])),
    "scores": lambda: SCORES["g"][0],
    "draw": lambda: subfed.draw(NET, subfed.RandomSubset(), capacity=0.5)["g"].numpy(),
    "draw_callable": lambda: subfed.draw(NET, lambda request: [1]),
    "bytes": lambda: subfed.Submodel.from_bytes(NET, HALF.to_bytes()),
    "pickle": lambda: pickle.loads(STATE),
    "json": lambda: subfed.Model.read(NET.to_json()),
    "model": lambda: (NET.tensors[0].shape, NET.groups[0].name, str(HALF), HALF.shapes),
    "check_shapes": lambda: NET.check_shapes({"t": TWO}),
    "coverage": lambda: (SEEN.record(HALF), SEEN.end_round(), SEEN.counts("g")),
    "capsule": lambda: deleted(Producer(TWO), lambda p: subfed.average_cohort(NET, [(FULL, [p])], [SERVER])),
    "versioned_capsule": lambda: deleted(Producer(TWO, version=1, flags=1), lambda p: subfed.slice([p], HALF)),
    "capsule_to_write": lambda: deleted(Producer(SERVER), lambda p: subfed.scatter([ONE], HALF, [p])),
}
REFUSED = {
    "shape": lambda: subfed.average_cohort(NET, [(FULL, [WRONG])], [SERVER]),
    "shape_of_out": lambda: subfed.slice([TWO], HALF, out=[WRONG]),
    "name": lambda: subfed.slice({"s": TWO}, HALF),
    "added": lambda: MEAN.add(FULL, [WRONG]),
    "finished": lambda: MEAN.finish([WRONG]),
    "device": lambda: subfed.slice([Producer(TWO, device=2)], HALF),
    "version": lambda: subfed.slice([Producer(TWO, version=2)], HALF),
    "read_only": lambda: subfed.scatter([ONE], HALF, [Producer(SERVER, version=1, flags=1)]),
    "used_capsule": lambda: (lambda p: subfed.scatter([p], FULL, [p]))(Producer(TWO)),
    "scheme": lambda: subfed.draw(NET, lambda request: [2]),
    "sets": lambda: subfed.Submodel.from_bytes(NET, BYTES[:-1]),
    "text": lambda: subfed.Model.read(TEXT[:-9]),
    "scores_of_integers": lambda: subfed.node_norms(NET, [np.ones(2, np.int64)]),
}


def refused(call):
    def run():
        try:
            call()
        except subfed.Error:
            return
        raise AssertionError("not refused")
    return run


def leaves_nothing(call, times):
    for _ in range(500):
        call()
    references = counts()
    for attempt in range(3):  # a leak is there each time; caches of the interpreter fill once
        blocks, bytes_before = sys.getallocatedblocks(), heap()
        for _ in range(times):
            call()
        assert counts() == references
        more_bytes, more_blocks = heap() - bytes_before, sys.getallocatedblocks() - blocks
        if more_bytes < times * 8 and more_blocks < times / 2:
            return
    assert more_bytes < times * 8  # the least that could be kept of each call
    assert more_blocks < times / 2


@pytest.mark.parametrize("name", CALLED)
def test_calls(name):
    leaves_nothing(CALLED[name], CALLS)


@pytest.mark.parametrize("name", REFUSED)
def test_calls_that_are_refused(name):
    leaves_nothing(refused(REFUSED[name]), CALLS)


def test_proofs():
    leaves_nothing(lambda: subfed.prove_description(NET, network, [TWO], advice_runs=0), CALLS // 10)
    leaves_nothing(lambda: subfed.random_values(NET), CALLS // 10)
    leaves_nothing(lambda: subfed.derive_widths([{"t": (4,)}, {"t": (2,)}]), CALLS // 10)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    two, server, grad = torch.ones(2), torch.zeros(2), torch.ones(2, requires_grad=True)
    leaves_nothing(lambda: subfed.slice([grad], HALF), CALLS)
    leaves_nothing(lambda: subfed.average_cohort(NET, [(FULL, [two])], [server]), CALLS)
    leaves_nothing(refused(lambda: subfed.slice([two, two], HALF)), CALLS // 10)
    references = [sys.getrefcount(t) for t in (two, server, grad)]
    assert references == references[:1] * 3
