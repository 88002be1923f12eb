#!/usr/bin/python3
"""The package with gradients on a GPU, and without PyTorch: NVIDIA's driver, or what stands in for it, by ctypes."""

import array
import ctypes
import unittest

from session_test import TENSORS, on_ranks

import commtune

RANKS = 3


class Driver:
    """The calls that a framework would make for us."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            raise AssertionError(f"{name}: {status}")


class Member:
    """A rank whose gradients a stream writes."""

    def __init__(self, driver, rank, all_gather):
        self.driver, self.rank = driver, rank
        driver.call("cuCtxSetCurrent", driver.context)
        self.stream = ctypes.c_void_p()
        driver.call("cuStreamCreateWithPriority", ctypes.byref(self.stream), 1, 0)
        self.memory = [ctypes.c_uint64() for _ in TENSORS]
        for address, (_, size) in zip(self.memory, TENSORS, strict=True):
            driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        self.session = commtune.Session(rank, RANKS, all_gather, timeout=100)
        self.session.layout("float32", TENSORS, [address.value for address in self.memory], gpu=0)

    def copy(self, call, into, source, size):
        self.driver.call(call, into, source, ctypes.c_size_t(size), self.stream)

    def step(self):
        self.session.begin()
        written = []
        for index in reversed(range(len(TENSORS))):
            size = TENSORS[index][1]
            values = array.array("f", [self.rank + index] * (size // 4))
            written.append(values)
            self.copy("cuMemcpyHtoDAsync_v2", self.memory[index], ctypes.c_void_p(values.buffer_info()[0]), size)
            self.session.ready_after(index, self.stream.value)
        self.session.wait_all()

    def read(self, index):
        size = TENSORS[index][1]
        values = array.array("f", bytes(size))
        self.copy("cuMemcpyDtoHAsync_v2", ctypes.c_void_p(values.buffer_info()[0]), self.memory[index], size)
        self.driver.call("cuStreamSynchronize", self.stream)
        return values


class GpuSessions(unittest.TestCase):
    def test_gradients_are_means_where_they_lie(self):
        driver = Driver()

        def body(rank, all_gather):
            member = Member(driver, rank, all_gather)
            with member.session as session:
                session.adopt("buckets" if rank == 0 else None)
                for _ in range(3):
                    member.step()
                for index in range(len(TENSORS)):
                    self.assertEqual(set(member.read(index)), {1.0 + index})
                with self.assertRaisesRegex(commtune.BadCall, "tensor = 9: must be less than 3"):
                    session.ready_after(9, member.stream.value)

        on_ranks(RANKS, body)


if __name__ == "__main__":
    unittest.main()
