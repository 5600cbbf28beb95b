#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Computes the uploads of one small round of secure aggregation, a second time and on its own.

Works from the doc comments of secure/masked_update.hpp and average/fixed_point.hpp, and from the
definition of ChaCha20; shares no code with the library. Writes secure_uploads.inc next to it:

    python3 tests/golden/make_secure.py

The places of elements in the streams are part of the interface: a difference is a breaking change.
"""

import struct
from pathlib import Path

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1


def chacha20(key, word):
    """A 64-bit word of the stream, with a counter of 64 bits and a nonce of zeros."""
    block, place = divmod(word, 8)
    start = list(struct.unpack("<4I", b"expand 32-byte k")) + list(struct.unpack("<8I", key))
    start += [block & MASK32, block >> 32, 0, 0]
    x = list(start)

    def quarter(a, b, c, d):
        for (i, j, k, turn) in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[i] = (x[i] + x[j]) & MASK32
            y = x[k] ^ x[i]
            x[k] = ((y << turn) | (y >> (32 - turn))) & MASK32

    for _ in range(10):
        for column in range(4):
            quarter(column, 4 + column, 8 + column, 12 + column)
        for diagonal in range(4):
            quarter(diagonal, 4 + (diagonal + 1) % 4, 8 + (diagonal + 2) % 4, 12 + (diagonal + 3) % 4)
    stream = struct.pack("<16I", *((a + b) & MASK32 for a, b in zip(x, start)))
    return struct.unpack_from("<Q", stream, 8 * place)[0]


# Groups g (4 nodes), h (3, private rows), e (2); tensors w (h, g), a counter, b (h), v (e).
G = [[0, 1, 2, 3]] * 3 + [[2, 1]] * 3
E = [[0, 1]] * 2 + [[0]] * 4
LABELS = [[0], [0, 2], [1, 2], [0, 1, 2], [], [2]]
CLASS = [0, 0, 0, 1, 1, 1]  # with the same nodes of g
FIRST = {"w": 0, "b": 12, "v": 15, "rows": 17}
QUANTA = 1 << 50  # bound 1, 8 clients: 0 + 3 - 53
WEIGHT = 1 << (52 - 3)  # 1, in multiples of 2^(3 - 52)


def held(client):
    """(tensor, place in the stream, value) for each word of the upload, in its order."""
    local = 0
    out = []
    for h in range(3):
        for g in G[client]:
            out.append(["w", FIRST["w"] + 4 * h + g, local if h in LABELS[client] else None])
            local += 1
    for h in range(3):
        out.append(["b", FIRST["b"] + h, local if h in LABELS[client] else None])
        local += 1
    for e in E[client]:
        out.append(["v", FIRST["v"] + e, local])
        local += 1
    for h in range(3):
        out.append(["rows", FIRST["rows"] + 3 * CLASS[client] + h, None])
    return out


def upload(client):
    places = [[place for _, place, _ in held(c)] for c in range(6)]
    out = []
    row = 0
    for kind, place, local in held(client):
        if kind == "v" and sum(place in p for p in places) < 3:
            continue  # of two holders: not sent
        word = 0
        if kind == "rows":
            word = WEIGHT if row in LABELS[client] else 0
            row += 1
        elif local is not None:
            word = (local - 7) * QUANTA // 16
        word += chacha20(bytes([client + 1] * 32), place)
        for other in range(6):
            if other == client or place not in places[other]:
                continue
            a, b = sorted((client, other))
            mask = chacha20(bytes([100 + 10 * a + b] * 32), place)
            word += mask if client < other else -mask
        out.append(word & MASK64)
    return out


if __name__ == "__main__":
    lines = ["// SPDX-License-Identifier: MIT",
             "// {client, word}. Made by make_secure.py; not to be edited."]
    for client in range(6):
        for word in upload(client):
            lines.append("{%d, 0x%016xu}," % (client, word))
    Path(__file__).with_name("secure_uploads.inc").write_text("\n".join(lines) + "\n")
