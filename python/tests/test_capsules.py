# SPDX-License-Identifier: MIT
"""What becomes of DLPack capsules, also of those that are no good, and of arrays that are only read."""
import ctypes
import datetime
import gc
import sys

import numpy as np
import pytest

import subfed
from capsules import Producer, api

NET = subfed.models.mlp([4, 6, 2])
SHAPES = [(6, 4), (6,), (2, 6), (2,)]


def zeros():
    return [np.zeros(s, np.float32) for s in SHAPES]


def producers(**named):
    return [Producer(z + np.float32(1), **named) for z in zeros()]


def average(to, *updates):
    """Updates of clients of capacity 1, of one round."""
    return subfed.average_cohort(
        NET, [(subfed.draw(NET, subfed.Rolling(), round=1, client=c), u) for c, u in enumerate(updates)],
        to)


def held(report):
    return report.held, report.unheld


def refused(text, to, *updates):
    with pytest.raises(subfed.Error, match=text) as caught:
        average(to, *updates)
    wrong = caught.value
    caught = None
    gc.collect()
    return wrong


def read_only(array):
    out = np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)
    assert not out.flags.writeable
    return out


def test_a_capsule_is_taken_once():
    update, to = producers(), zeros()
    assert held(average(to, update)) == (44, 0)
    assert all((g == 1).all() for g in to)
    for p in update:
        assert (p.deleted, p.capsule_name()) == (1, b"used_dltensor")
    wrong = refused("used_dltensor.*has taken", to, update)
    assert (wrong.tensor, wrong.client) == ("fc1.weight", 0)
    assert [p.deleted for p in update] == [1] * 4


def test_the_same_capsule_twice_in_one_call_is_refused():
    update, to = producers(), zeros()
    assert refused("used_dltensor", to, update, update).client == 1
    assert [p.deleted for p in update] == [1] * 4
    assert all((g == 0).all() for g in to)


@pytest.mark.parametrize("flags", [0, 1])
def test_versioned_tensors_are_read_also_where_they_are_read_only(flags):
    update, to = producers(version=1, flags=flags), zeros()
    assert held(average(to, update)) == (44, 0)
    assert all((g == 1).all() for g in to)
    for p in update:
        assert (p.deleted, p.capsule_name()) == (1, b"used_dltensor_versioned")
    refused("used_dltensor_versioned", to, update)
    assert [p.deleted for p in update] == [1] * 4


def test_another_major_version_is_refused_and_deleted_once():
    update = producers(version=2)
    refused("version 2, known is 1", zeros(), update)
    assert [p.deleted for p in update] == [1, 0, 0, 0]  # the others were not asked


def test_read_only_tensors_are_never_written():
    to = producers(version=1, flags=1)
    refused("'fc1.weight' is a destination, but is read-only", to, zeros())
    assert all((p.array == 1).all() for p in to)
    assert [p.deleted for p in to] == [1, 0, 0, 0]
    for arrays in ([read_only(z) for z in zeros()],
                   [np.broadcast_to(np.float32(0), s) for s in SHAPES],
                   [z.tobytes() for z in zeros()]):
        refused("is a destination, but is read-only", arrays, zeros())


def test_versioned_tensors_are_written():
    to = producers(version=1)
    average(to, [z + np.float32(5) for z in zeros()])
    assert all((p.array == 5).all() for p in to)
    assert [p.deleted for p in to] == [1] * 4


def test_other_capsules_are_refused_by_name_and_left_alone():
    foreign = datetime.datetime_CAPI
    update = producers()
    update[2].capsule = foreign
    wrong = refused("a capsule named 'datetime.datetime_CAPI'", zeros(), update)
    assert wrong.tensor == "fc2.weight"
    assert [p.deleted for p in update] == [1, 1, 0, 0]
    assert api.PyCapsule_GetName(foreign) == b"datetime.datetime_CAPI"
    for name in (b"DLTENSOR", b"dltensor_versioned2", b"dltenso"):
        update = producers(name=name)
        refused(f"a capsule named '{name.decode()}'", zeros(), update)
        assert (update[0].deleted, update[0].capsule_name()) == (0, name)
    nameless = api.PyCapsule_New(ctypes.addressof(update[0].managed), None, None)
    update[0].capsule = nameless
    refused("a capsule without a name", zeros(), update)


def test_what_is_no_capsule_or_no_tensor_is_refused():
    update = producers()
    update[0].capsule = 7
    refused("type 'int' by __dlpack__, expected a capsule", zeros(), update)
    refused("'fc1.weight' of client 0 is of type 'list'", zeros(), [[1.0]] * 4)
    refused("is of type 'NoneType'", zeros(), [None] * 4)


def test_tensors_are_deleted_once_where_the_average_refuses():
    update, other = producers(), producers()
    other[3] = Producer(np.zeros(3, np.float32))
    to = zeros()
    refused("fc2.bias", to, update, other)
    assert [p.deleted for p in update + other] == [1] * 8
    assert all((g == 0).all() for g in to)
    update = producers(device=2)
    refused("on a CUDA device, which the CPU cannot read; copy it there first", to, update)
    assert [p.deleted for p in update] == [1, 0, 0, 0]
    update = [Producer(z.astype(np.complex64)) for z in zeros()]
    refused("complex", to, update)
    assert [p.deleted for p in update] == [1, 0, 0, 0]


def test_the_source_of_a_capsule_may_be_gone():
    class Once:
        def __init__(self, producer):
            self.producer = producer

        def __dlpack__(self):
            producer, self.producer = self.producer, None
            kept.append(producer.deleter)  # the callback; not the object
            return producer.capsule

    kept, to = [], zeros()
    update = [Once(p) for p in producers()]
    alive = [u.producer for u in update]
    assert held(average(to, update)) == (44, 0)
    assert [p.deleted for p in alive] == [1] * 4
    with pytest.raises(subfed.Error, match="cannot be read"):
        average(to, update)


ONE = subfed.Model()
ONE.tensor("t", [ONE.group("g", 2)])
FULL = subfed.Submodel.full(ONE)


def plain():
    return [np.ones(2, np.float32)]


def begun():
    steps = subfed.ServerSGD(ONE)
    steps.begin(plain())
    return steps


READ = {
    "slice": lambda t: subfed.slice([t], FULL),
    "scatter": lambda t: subfed.scatter([t], FULL, plain()),
    "scatter_add": lambda t: subfed.scatter_add({"t": t}, FULL, plain()),
    "average": lambda t: subfed.average_cohort(ONE, [(FULL, [t])], plain()),
    "add": lambda t: subfed.SelectiveAverage(ONE).add(FULL, [t]),
    "begin": lambda t: subfed.ServerSGD(ONE).begin([t]),
    "node_norms": lambda t: subfed.node_norms(ONE, {"t": t}),
    "values": lambda t: subfed.prove_description(ONE, lambda d: d["t"] ** 2, [t], advice_runs=0),
    "cut_difference": lambda t: subfed.cut_difference(FULL, [t], lambda d: d["t"]),
}
WRITTEN = {
    "out": lambda t: subfed.slice(plain(), FULL, out=[t]),
    "scatter_into": lambda t: subfed.scatter(plain(), FULL, {"t": t}),
    "scatter_add_into": lambda t: subfed.scatter_add(plain(), FULL, [t]),
    "average_into": lambda t: subfed.average_cohort(ONE, [(FULL, plain())], [t]),
    "finish": lambda t: subfed.SelectiveAverage(ONE).finish([t]),
    "optimizer": lambda t: begun().finish(subfed.HeldElements.of(ONE, [FULL]), [t]),
}
TAKEN = {**READ, **WRITTEN}


class Gives:
    """An object whose __dlpack__ gives what it is told to."""

    def __init__(self, given):
        self.given = given

    def __dlpack__(self, **named):
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


def tricks():
    array = np.ones(2, np.float32)
    used, nameless = Producer(array), Producer(array)
    subfed.slice([used], FULL)
    yield "has taken", used, 1
    yield "without a name", Gives(api.PyCapsule_New(ctypes.addressof(nameless.managed), None, None)), None
    yield "named 'datetime.datetime_CAPI'", Gives(datetime.datetime_CAPI), None
    yield "named 'dltensor2'", Producer(array, name=b"dltensor2"), 0
    yield "type 'NoneType' by __dlpack__", Gives(None), None
    yield "type 'int' by __dlpack__", Gives(7), None
    yield "cannot be read: BufferError: no$", Gives(BufferError("no")), None
    yield "version 9, known is 1", Producer(array, version=9), 1
    yield "on a CUDA device", Producer(array, device=2), 1
    yield "CUDA|device", Producer(array, device=2, version=1), 1
    yield "another type|elements of", Producer(array, code=9), 1
    yield "of type 'object'", object(), None
    yield "of type 'list'", [1.0, 2.0], None


@pytest.mark.parametrize("name", TAKEN)
def test_every_trick_is_an_error_wherever_a_tensor_is_taken(name):
    for text, given, deleted in tricks():
        with pytest.raises(subfed.Error, match=text) as caught:
            TAKEN[name](given)
        assert caught.value.tensor == "t"
        if deleted is not None:
            assert given.deleted == deleted, text


@pytest.mark.parametrize("name", TAKEN)
def test_good_capsules_are_taken_once_wherever_a_tensor_is_taken(name):
    for version in (None, 1):
        given = Producer(np.ones(2, np.float32), version=version)
        TAKEN[name](given)
        assert given.deleted == 1
        with pytest.raises(subfed.Error, match="has taken"):
            TAKEN[name](given)
        assert given.deleted == 1


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_only_read_may_be_read_only_and_what_is_written_may_not(name):
    for given in (Producer(np.ones(2, np.float32), version=1, flags=1), read_only(np.ones(2, np.float32))):
        if name in READ:
            TAKEN[name](given)
        else:
            with pytest.raises(subfed.Error, match="is a destination, but is read-only"):
                TAKEN[name](given)


def test_exceptions_that_are_not_about_the_tensor_come_through():
    for error in (KeyboardInterrupt(), MemoryError(), ZeroDivisionError("mine")):
        for call in TAKEN.values():
            with pytest.raises(type(error)):
                call(RaisesBase(error))


class RaisesBase:
    def __init__(self, error):
        self.error = error

    def __dlpack__(self, **named):
        raise self.error


def test_cut_gives_arrays_to_train_in_place():
    server = [z + np.float32(3) for z in zeros()]
    arrays = subfed.slice(server, subfed.draw(NET, subfed.Rolling(), round=1))
    for a in arrays:
        assert (a == 3).all()
        a += 1
    assert all((s == 3).all() for s in server)
    assert held(average(server, arrays)) == (44, 0)
    assert all((s == 4).all() for s in server)


def test_a_client_may_leave_a_layer_as_it_came():
    server = zeros()
    arrays = subfed.slice(server, subfed.draw(NET, subfed.Rolling(), round=1))
    update = arrays[:2] + [a + np.float32(1) for a in arrays[2:]]
    assert held(average(server, update)) == (44, 0)
    assert [s.max() for s in server] == [0, 0, 1, 1]


def test_cut_reads_what_is_read_only():
    sub = subfed.draw(NET, subfed.Rolling(), round=1, capacity=0.5)
    arrays = subfed.slice([read_only(z + np.float32(2)) for z in zeros()], sub)
    assert [a.shape for a in arrays] == [(3, 4), (3,), (2, 3), (2,)]
    assert all((a == 2).all() for a in arrays)


def test_what_cut_gives_goes_to_other_libraries_too():
    torch = pytest.importorskip("torch")
    server = [z + np.float32(2) for z in zeros()]
    arrays = subfed.slice(server, subfed.draw(NET, subfed.Rolling(), round=1))
    for a in arrays:
        seen = torch.from_dlpack(a)
        assert (seen == 2).all()
        a[...] = 3
        assert (seen == 3).all()  # one memory
    assert held(average(server, [torch.from_dlpack(a) for a in arrays])) == (44, 0)
    assert all((s == 3).all() for s in server)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_read_only_updates_of_every_floating_type_are_averaged(kind):
    def behind(a):
        return np.repeat(a, 2, axis=0)[::2]

    for made in (read_only, lambda a: a, np.asfortranarray, lambda a: a[::-1][::-1], behind,
                 lambda a: a.data, lambda a: memoryview(a).toreadonly()):
        server = zeros()
        update = [made(z.astype(kind) + kind(1.5)) for z in zeros()]
        assert held(average(server, update)) == (44, 0)
        assert all((s == 1.5).all() for s in server)


def test_clients_of_several_types_are_averaged_together():
    server = zeros()
    average(server, [read_only(z.astype(np.float16) + np.float16(1)) for z in zeros()],
            [z.astype(np.float64) + 2 for z in zeros()])
    assert all((s == 1.5).all() for s in server)


@pytest.mark.parametrize("kind", [">f4", "S4", "c8", "i4", "M8[s]", "O"])
def test_arrays_that_are_no_numbers_here_are_refused(kind):
    server = zeros()
    wrong = refused("fc1.weight", server, [np.zeros(s, kind) for s in SHAPES])
    assert (wrong.tensor, wrong.client) == ("fc1.weight", 0)
    assert all((s == 0).all() for s in server)


def test_unaligned_arrays_and_broken_strides_are_refused():
    update = zeros()
    update[0] = np.frombuffer(b"x" + update[0].tobytes(), np.float32, offset=1).reshape(6, 4)
    refused("'fc1.weight' of client 0 .*copy it first", zeros(), update)
    rows = np.zeros(6, np.dtype([("a", np.float32), ("b", np.int8)], align=False))
    update = zeros()
    update[1] = rows["a"]
    refused("'fc1.bias' of client 0 has strides that are no multiples", zeros(), update)


def test_masked_arrays_are_refused():
    update = zeros()
    update[1] = np.ma.masked_array(update[1], mask=[True] * 6)
    refused("'fc1.bias' of client 0 is a masked array", zeros(), update)


def test_exceptions_hold_no_arrays():
    update = [read_only(z) for z in zeros()]
    update[3] = read_only(np.zeros(3, np.float32))
    before = [sys.getrefcount(u) for u in update]
    for _ in range(3):
        with pytest.raises(subfed.Error):
            average(zeros(), update)
    assert [sys.getrefcount(u) for u in update] == before


def test_updates_that_lack_a_part_are_refused():
    sub = subfed.Submodel.full(NET)
    for row in [(zeros(),), (zeros(), 0), (sub,), (sub, zeros(), 1.0, 2), sub, None]:
        with pytest.raises(TypeError, match=r"expected \(submodel, tensors\)"):
            subfed.average_cohort(NET, [row], zeros())
    assert refused("3 client tensors are given by client 0, the model has 4", zeros(),
                   zeros()[:3]).tensor == "fc2.bias"
