#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Computes the values that pin the random streams of systems/*.hpp, on its own, in exact integers.

    python3 tests/golden/make_systems.py

The output is part of the API: a difference in it is a breaking change.
"""

from pathlib import Path

from make_golden import (BIG_SEED, FAR, FARTHEST, Stream, header, hexadecimal, name_hash, quoted, row)

HERE = Path(__file__).parent


def note(text):
    return header(text).replace('make_golden.py', 'make_systems.py')


def thresholds():
    """Numerator of the threshold: the upper 53 bits of the node's word."""
    out = note('{seed, round, step, group, node, the threshold times 2^53}.')
    for seed, round_, step, group in [(0, 0, 0, ''), (1, 0, 0, 'conv1'), (1, 1, 0, 'conv1'),
                                      (1, 0, 1, 'conv1'), (BIG_SEED, FAR, 3, 'fc1'),
                                      (FARTHEST, FARTHEST, FARTHEST, 'x')]:
        stream = Stream(seed, round_, step, name_hash(group) ^ name_hash('subfed sync_dropout'))
        for node in [0, 1, 2, 63, 100000]:
            out += row(hexadecimal(seed), hexadecimal(round_), hexadecimal(step), quoted(group),
                       str(node), hexadecimal(stream.bits(node) >> 11))
    return out


def widths():
    """Of `allowed` equal widths the one in which the unit interval's number lies, in integers."""
    out = note('{seed, round, client, step, group of an own width or "", widths, number of width}.')
    for seed, round_, client in [(0, 0, 0), (1, 2, 3), (BIG_SEED, FAR, FAR + 1)]:
        for group in ['', 'hidden']:
            for step in [0, 1, 2, 1 << 40]:
                for allowed in [1, 3, 8]:
                    purpose = name_hash('subfed ordered_dropout') ^ (name_hash(group) if group else 0)
                    word = Stream(seed, round_, client, purpose).bits(step) >> 11
                    out += row(hexadecimal(seed), hexadecimal(round_), hexadecimal(client),
                               hexadecimal(step), quoted(group), str(allowed),
                               str(word * allowed >> 53))
    return out


def members():
    out = note('{assignment, seed, round, client, members, the member}.')
    for by in ['per_round', 'per_client']:
        for seed, round_, client in [(0, 0, 0), (1, 2, 3), (1, 3, 3), (BIG_SEED, FAR, FARTHEST)]:
            for count in [1, 2, 5, 1000]:
                drawn_in = round_ if by == 'per_round' else 0
                stream = Stream(seed, drawn_in, client, 'subfed ensemble_members')
                out += row(quoted(by), hexadecimal(seed), hexadecimal(round_), hexadecimal(client),
                           str(count), str(stream.below(count)))
    return out


if __name__ == '__main__':
    for name, content in [('thresholds', thresholds()), ('widths', widths()),
                          ('members', members())]:
        (HERE / f'systems_{name}.inc').write_text(content)
