# SPDX-License-Identifier: MIT
"""Which tensors the Python example takes and gives, and what becomes of capsules when it refuses."""
import ctypes
import gc
import pathlib
import sys
import unittest

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import aggregate  # noqa: E402

api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetName.restype = ctypes.c_char_p
api.PyCapsule_GetName.argtypes = [ctypes.py_object]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Plain(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


class Producer:
    """An array with a __dlpack__ that gives one capsule, each time the same, and counts deletions."""

    def __init__(self, array, version=None, flags=0, name=None, device=1):
        self.array, self.deleted = array, 0
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.deleter = DELETER(self.delete)
        code = {"f": 2, "i": 0, "u": 1, "c": 5}[array.dtype.kind]
        tensor = DLTensor(array.ctypes.data, device, 0, array.ndim, code, 8 * array.itemsize, 1, self.shape,
                          None, 0)
        if version is None:
            self.managed = Plain(tensor, None, self.deleter)
        else:
            self.managed = Versioned(version, 0, None, self.deleter, flags, tensor)
        self.name = name or (b"dltensor" if version is None else b"dltensor_versioned")
        self.capsule = api.PyCapsule_New(ctypes.addressof(self.managed), self.name, None)

    def delete(self, _):
        self.deleted += 1

    def capsule_name(self):
        return api.PyCapsule_GetName(self.capsule)

    def __dlpack__(self, stream=None):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def zeros():
    shapes = [(6, 4), (6,), (2, 6), (2,)]
    return [np.zeros(s, np.float32) for s in shapes]


def average(globals_, *updates):
    """Updates of clients of capacity 1, of one round."""
    return aggregate.server.average(
        globals_, [(u, client, 1.0, 1.0) for client, u in enumerate(updates)], 1)


def read_only(array):
    out = np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)
    assert not out.flags.writeable
    return out


class Capsules(unittest.TestCase):
    def producers(self, **named):
        return [Producer(z + np.float32(1), **named) for z in zeros()]

    def refused(self, error, text, globals_, *updates):
        with self.assertRaisesRegex(error, text):
            average(globals_, *updates)
        gc.collect()

    def test_a_capsule_is_taken_once(self):
        update, to = self.producers(), zeros()
        self.assertEqual(average(to, update), {"held": 44, "unheld": 0})
        self.assertTrue(all((g == 1).all() for g in to))
        for p in update:
            self.assertEqual((p.deleted, p.capsule_name()), (1, b"used_dltensor"))
        self.refused(ValueError, "used_dltensor.*has taken", to, update)
        self.assertEqual([p.deleted for p in update], [1] * 4)

    def test_the_same_capsule_twice_in_one_call_is_refused(self):
        update, to = self.producers(), zeros()
        self.refused(ValueError, "used_dltensor", to, update, update)
        self.assertEqual([p.deleted for p in update], [1] * 4)
        self.assertTrue(all((g == 0).all() for g in to))

    def test_versioned_tensors_are_read_also_where_they_are_read_only(self):
        for flags in (0, 1):
            update, to = self.producers(version=1, flags=flags), zeros()
            self.assertEqual(average(to, update), {"held": 44, "unheld": 0})
            self.assertTrue(all((g == 1).all() for g in to))
            for p in update:
                self.assertEqual((p.deleted, p.capsule_name()), (1, b"used_dltensor_versioned"))
            self.refused(ValueError, "used_dltensor_versioned", to, update)
            self.assertEqual([p.deleted for p in update], [1] * 4)

    def test_another_major_version_is_refused_and_deleted_once(self):
        update = self.producers(version=2)
        self.refused(RuntimeError, "version 2, known is 1", zeros(), update)
        self.assertEqual([p.deleted for p in update], [1, 0, 0, 0])  # the others were not asked

    def test_read_only_tensors_are_never_written(self):
        to = self.producers(version=1, flags=1)
        self.refused(RuntimeError, "is a destination, but is read-only", to, zeros())
        self.assertTrue(all((p.array == 1).all() for p in to))
        self.assertEqual([p.deleted for p in to], [1] * 4)
        with self.assertRaises(BufferError):
            average([read_only(z) for z in zeros()], zeros())

    def test_versioned_tensors_are_written(self):
        to = self.producers(version=1)
        average(to, [z + np.float32(5) for z in zeros()])
        self.assertTrue(all((p.array == 5).all() for p in to))
        self.assertEqual([p.deleted for p in to], [1] * 4)

    def test_other_capsules_are_refused_by_name_and_left_alone(self):
        import datetime
        foreign = datetime.datetime_CAPI
        update = self.producers()
        update[2].capsule = foreign
        self.refused(ValueError, "a capsule named 'datetime.datetime_CAPI'", zeros(), update)
        self.assertEqual([p.deleted for p in update], [1, 1, 0, 0])
        self.assertEqual(api.PyCapsule_GetName(foreign), b"datetime.datetime_CAPI")
        for name in (b"DLTENSOR", b"dltensor_versioned2", b"dltenso"):
            update = self.producers(name=name)
            self.refused(ValueError, f"a capsule named '{name.decode()}'", zeros(), update)
            self.assertEqual((update[0].deleted, update[0].capsule_name()), (0, name))
        nameless = api.PyCapsule_New(ctypes.addressof(update[0].managed), None, None)
        update[0].capsule = nameless
        self.refused(ValueError, "a capsule without a name", zeros(), update)

    def test_what_is_no_capsule_or_no_tensor_is_refused(self):
        update = self.producers()
        update[0].capsule = 7
        self.refused(TypeError, "type 'int', expected a capsule", zeros(), update)
        self.refused(AttributeError, "__dlpack__", zeros(), [[1.0]] * 4)

    def test_tensors_are_deleted_once_where_the_average_refuses(self):
        update = self.producers()
        other = self.producers()
        other[3] = Producer(np.zeros(3, np.float32))
        to = zeros()
        self.refused(RuntimeError, "fc2.bias", to, update, other)
        self.assertEqual([p.deleted for p in update + other], [1] * 8)
        self.assertTrue(all((g == 0).all() for g in to))
        update = self.producers(device=2)
        self.refused(RuntimeError, "CUDA", to, update)
        self.assertEqual([p.deleted for p in update], [1] * 4)
        update = [Producer(z.astype(np.complex64)) for z in zeros()]
        self.refused(RuntimeError, "complex", to, update)
        self.assertEqual([p.deleted for p in update], [1] * 4)


class Arrays(unittest.TestCase):
    def test_cut_gives_arrays_to_train_in_place(self):
        server = [z + np.float32(3) for z in zeros()]
        arrays = aggregate.cut(server, 1, 0, 1.0)
        for a in arrays:
            self.assertTrue((a == 3).all())
            a += 1
        self.assertTrue(all((s == 3).all() for s in server))
        self.assertEqual(average(server, arrays), {"held": 44, "unheld": 0})
        self.assertTrue(all((s == 4).all() for s in server))

    def test_a_client_may_leave_a_layer_as_it_came(self):
        server = zeros()
        arrays = aggregate.cut(server, 1, 0, 1.0)
        update = arrays[:2] + [a + np.float32(1) for a in arrays[2:]]
        self.assertEqual(average(server, update), {"held": 44, "unheld": 0})
        self.assertEqual([s.max() for s in server], [0, 0, 1, 1])

    def test_cut_reads_what_is_read_only(self):
        arrays = aggregate.cut([read_only(z + np.float32(2)) for z in zeros()], 1, 0, 0.5)
        self.assertEqual([a.shape for a in arrays], [(3, 4), (3,), (2, 3), (2,)])
        self.assertTrue(all((a == 2).all() for a in arrays))

    def test_what_cut_gives_goes_to_other_libraries_too(self):
        server = [z + np.float32(2) for z in zeros()]
        tensors = aggregate.server.cut(server, 1, 0, 1.0)
        for t in tensors:
            seen = np.from_dlpack(t)
            self.assertTrue((seen == 2).all())
            np.asarray(t)[...] = 3
            self.assertTrue((seen == 3).all())  # one memory
        self.assertEqual(average(server, tensors), {"held": 44, "unheld": 0})
        self.assertTrue(all((s == 3).all() for s in server))
        kept = np.from_dlpack(tensors[0])
        capsule = tensors[0].__dlpack__(max_version=(1, 1))
        self.assertEqual(api.PyCapsule_GetName(capsule), b"dltensor_versioned")
        self.assertEqual(api.PyCapsule_GetName(tensors[0].__dlpack__()), b"dltensor")
        del tensors, capsule, seen, t
        gc.collect()
        self.assertTrue((kept == 3).all())

    def test_read_only_updates_of_every_floating_type_are_averaged(self):
        for kind in (np.float32, np.float64, np.float16):
            for made in (read_only, lambda a: a, lambda a: np.asfortranarray(a), lambda a: a[::-1][::-1]):
                server = zeros()
                update = [made(z.astype(kind) + kind(1.5)) for z in zeros()]
                self.assertEqual(average(server, update), {"held": 44, "unheld": 0})
                self.assertTrue(all((s == 1.5).all() for s in server), kind)
        strided = [np.repeat(z + np.float32(1.5), 2, axis=0)[::2] for z in zeros()]
        for s in strided:
            s.flags.writeable = False
        server = zeros()
        average(server, strided)
        self.assertTrue(all((s == 1.5).all() for s in server))

    def test_clients_of_several_types_are_averaged_together(self):
        server = zeros()
        average(server, [read_only(z.astype(np.float16) + np.float16(1)) for z in zeros()],
                [z.astype(np.float64) + 2 for z in zeros()])
        self.assertTrue(all((s == 1.5).all() for s in server))

    def test_read_only_arrays_that_are_no_numbers_here_are_refused(self):
        for kind, error in ((">f4", (BufferError, TypeError)), ("S4", (BufferError, TypeError)),
                            ("c8", (TypeError, RuntimeError)), ("i4", RuntimeError)):
            server = zeros()
            with self.assertRaises(error):
                average(server, [read_only(z.astype(kind)) for z in zeros()])
            self.assertTrue(all((s == 0).all() for s in server))

    def test_unaligned_read_only_arrays_are_refused(self):
        update = zeros()
        update[0] = np.frombuffer(b"x" + update[0].tobytes(), np.float32, offset=1).reshape(6, 4)
        with self.assertRaisesRegex(RuntimeError, "copy it first"):
            average(zeros(), update)

    def test_exceptions_hold_no_arrays(self):
        update = [read_only(z) for z in zeros()]
        update[3] = read_only(np.zeros(3, np.float32))
        before = [sys.getrefcount(u) for u in update]
        for _ in range(3):
            with self.assertRaises(RuntimeError):
                average(zeros(), update)
        self.assertEqual([sys.getrefcount(u) for u in update], before)

    def test_updates_that_lack_a_part_are_refused(self):
        with self.assertRaises(IndexError):
            aggregate.server.average(zeros(), [(zeros(), 0)], 1)
        with self.assertRaises(RuntimeError):
            average(zeros(), zeros()[:3])


if __name__ == "__main__":
    unittest.main()
