# SPDX-License-Identifier: BSD-3-Clause
"""gpu.py - arrays in GPU memory, in the order of a stream; python.sh starts it."""

import ctypes

import libcoll
import numpy

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, f"{name}: {status}"


def made(kind, name, *arguments):
    value = kind()
    call(name, ctypes.byref(value), *arguments)
    return value


class Stream:
    """A stream as torch has it."""

    def __init__(self):
        self.cuda_stream = made(ctypes.c_void_p, "cuStreamCreate", 1).value


class DeviceArray:
    def __init__(self, values):
        self.values, self.size = values, ctypes.c_size_t(values.nbytes)
        self.memory = made(ctypes.c_uint64, "cuMemAlloc_v2", self.size)
        call("cuMemcpyHtoD_v2", self.memory, values.ctypes.data_as(ctypes.c_void_p), self.size)
        call("cuCtxSynchronize")  # other streams see it
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (self.memory.value, False),
        }

    def get(self, stream):
        call("cuStreamSynchronize", ctypes.c_void_p(stream.cuda_stream))
        out = numpy.empty_like(self.values)
        call("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), self.memory, self.size)
        return out


def main():
    call("cuInit", 0)
    device = made(ctypes.c_int, "cuDeviceGet", 0)
    call("cuCtxSetCurrent", made(ctypes.c_void_p, "cuDevicePrimaryCtxRetain", device))
    stream = Stream()
    with libcoll.Communicator.from_env() as comm:
        wanted = sum(numpy.arange(5, dtype="f4") + r for r in range(comm.size))
        mine = DeviceArray(numpy.arange(5, dtype="f4") + comm.rank)
        rows = DeviceArray(numpy.zeros((comm.size, 5), "f4"))
        comm.allreduce(mine, stream=stream)
        numpy.testing.assert_array_equal(mine.get(stream), wanted)
        comm.start.allreduce(mine, "max", stream=stream.cuda_stream).wait()
        comm.register(rows)
        comm.allgather(mine, rows, stream=stream)
        numpy.testing.assert_array_equal(rows.get(stream), [wanted] * comm.size)
        comm.deregister(rows)
        try:
            comm.allgather(mine)
        except TypeError as error:
            assert "need out=" in str(error)
        else:
            raise AssertionError("a new array in GPU memory")
        comm.barrier(stream=stream)
        call("cuStreamSynchronize", ctypes.c_void_p(stream.cuda_stream))
    print("passed")


main()
