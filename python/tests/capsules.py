# SPDX-License-Identifier: MIT
"""Producers of DLPack capsules that do what real ones should not."""
import ctypes

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

    def __init__(self, array, version=None, flags=0, name=None, device=1, code=None):
        self.array, self.deleted = array, 0
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.deleter = DELETER(self.delete)
        code = code if code is not None else {"f": 2, "i": 0, "u": 1, "c": 5, "b": 6}[array.dtype.kind]
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
