#!/usr/bin/python3
"""The product needs neither NVIDIA's libraries nor what stands in for them: it runs on hosts that have no GPU.

usage: links_test.py PROGRAM_OR_LIBRARY...
"""

import os
import re
import subprocess
import sys
import unittest

FILES = sys.argv[1:]
NVIDIA = re.compile(r"libcuda|libcudart|libnccl|libnvidia|libcudnn|libcublas|libnvrtc|standin")
# Functions of the driver, of CUDA's runtime, of NCCL, NVML, cuDNN and cuBLAS.
FUNCTION = re.compile(r"^(cu[A-Z]|cuda[A-Z]|nccl[A-Z]|nvml[A-Z]|cudnn[A-Z]|cublas)\w*$")


def printed(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | environment).stdout


def symbols_of(file, *options):
    return [line.split()[0].split("@")[0] for line in printed("nm", "--format=posix", *options, file).splitlines() if line.strip()]


class Links(unittest.TestCase):
    def test_the_loader_asks_for_no_library_of_nvidia(self):
        for file in FILES:
            with self.subTest(file):
                needed = printed("ldd", file, LD_LIBRARY_PATH="")
                self.assertIn("libc.so", needed)
                self.assertEqual([line.strip() for line in needed.splitlines() if NVIDIA.search(line)], [])

    def test_no_function_of_theirs_is_linked(self):
        for file in FILES:
            with self.subTest(file):
                undefined = symbols_of(file, "--dynamic", "--undefined-only")
                self.assertIn("__cxa_throw", undefined)
                self.assertEqual([name for name in undefined if FUNCTION.match(name)], [])

    def test_none_is_defined_and_nothing_of_the_stand_in_is_inside(self):
        for file in FILES:
            with self.subTest(file):
                defined = symbols_of(file, "--defined-only")
                self.assertGreater(len(defined), 100, "stripped: nothing can be seen")
                self.assertEqual([name for name in defined if FUNCTION.match(name) or "8commtune7standin" in name], [])


if __name__ == "__main__":
    if not FILES:
        sys.exit(__doc__)
    unittest.main(argv=sys.argv[:1])
