# SPDX-License-Identifier: MIT
"""The same bits as C++, for rounds of PreResNet18: tests/native.cpp does the same."""
import os
import subprocess

import numpy as np
import pytest

import subfed

NATIVE = os.environ.get("SUBFED_NATIVE")


@pytest.mark.skipif(not NATIVE, reason="SUBFED_NATIVE does not name the program")
def test_rounds_of_preresnet18_have_the_bits_of_cpp(tmp_path):
    subprocess.run([NATIVE, "check", str(tmp_path / "out")], check=True,
                   env={**os.environ, "LD_PRELOAD": ""})
    expected = np.fromfile(tmp_path / "out", np.uint32)
    net = subfed.models.preresnet18()
    at = 0
    for scheme in (subfed.Rolling(), subfed.RandomSubset(), subfed.Prefix.released()):
        server = {}
        for t, tensor in enumerate(net.tensors):
            i = np.arange(int(np.prod(tensor.shape)), dtype=np.int64)
            server[tensor.name] = (((31 * i + 17 * t) % 1021).astype(np.float32) / 1024).reshape(
                tensor.shape)
        updates = []
        for client in range(5):
            sub = subfed.draw(net, scheme, seed=7, round=17, client=client,
                              capacity=1 / (1 << client))
            tensors = subfed.slice(server, sub)
            for tensor in tensors.values():
                tensor *= np.float32(1 + client / 8)
            updates.append((sub, tensors, 1 + client / 3))
        subfed.average_cohort(net, reversed(updates), server, threads=2)
        for name, tensor in server.items():
            bits = tensor.reshape(-1).view(np.uint32)
            assert np.array_equal(bits, expected[at:at + bits.size]), (scheme, name)
            at += bits.size
    assert at == expected.size
