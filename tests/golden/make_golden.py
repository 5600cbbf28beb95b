#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Computes the values that pin the random streams and the schemes, a second time and on its own.

Works from the definitions in the doc comments of philox.hpp, capacity.hpp and schemes/*.hpp, in
exact integers and fractions; shares no code with the library. Writes the .inc files next to it:

    python3 tests/golden/make_golden.py

The output is part of the API: a difference in it is a breaking change.
"""

from fractions import Fraction
from math import ceil, floor
from pathlib import Path

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1


# --- philox.hpp ----------------------------------------------------------------------------------

def philox4x32(counter, key):
    """Ten rounds of Philox4x32, [Random123]."""
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for number in range(10):
        if number > 0:
            k0 = (k0 + 0x9E3779B9) & MASK32
            k1 = (k1 + 0xBB67AE85) & MASK32
        product0 = 0xD2511F53 * x0
        product1 = 0xCD9E8D57 * x2
        x0, x1, x2, x3 = ((product1 >> 32) ^ x1 ^ k0, product1 & MASK32,
                          (product0 >> 32) ^ x3 ^ k1, product0 & MASK32)
    return (x0, x1, x2, x3)


def name_hash(name):
    """64-bit FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK64
    return value


def words(x):
    return (x & MASK32, x >> 32)


class Stream:
    """One stream of 64-bit words, addressed by (seed, a, b, purpose)."""

    def __init__(self, seed, a, b, purpose):
        if isinstance(purpose, str):
            purpose = name_hash(purpose)
        first = philox4x32(words(a) + words(b), words(seed))
        second = philox4x32(first, words(purpose))
        self.key = second[:2]
        self.tag = second[2:]
        self.position = 0

    def bits(self, i):
        block = philox4x32(words(i // 2) + self.tag, self.key)
        low, high = block[:2] if i % 2 == 0 else block[2:]
        return high << 32 | low

    def next(self):
        self.position += 1
        return self.bits(self.position - 1)

    def below(self, bound):
        surplus = (1 << 64) % bound
        while True:
            word = self.next()
            if word >= surplus:
                return word % bound


# --- capacity.hpp --------------------------------------------------------------------------------

def kept(capacity, extent, rounding, minimum):
    """Nodes kept. The capacity is a fraction or a decimal, taken at its exact value."""
    product = Fraction(capacity) * extent
    count = {'floor': floor(product), 'ceil': ceil(product),
             'nearest': floor(product + Fraction(1, 2))}[rounding]
    return min(max(count, minimum), extent)


# --- schemes/ ------------------------------------------------------------------------------------

def rolling(site, step=1, overlap=None, walk='forward', rounding='floor', minimum=1, phase=0,
            client_phase=0):
    extent = site['extent']
    if extent == 0:
        return []
    length = kept(site['capacity'], extent, rounding, minimum)
    if overlap is not None:
        step = 1 + floor(Fraction(site['capacity']) * (1 - Fraction(overlap)) * extent)
    way = 1 if walk == 'forward' else -1
    start = way * site['round'] * step + phase + site['client'] * client_phase
    return [(start + t) % extent for t in range(length)]


def random(site, policy='per_client_and_round', count=1, rounding='floor', minimum=1):
    extent = site['extent']
    length = kept(site['capacity'], extent, rounding, minimum)
    if length == extent:
        return list(range(extent))
    group = name_hash(site['group'])
    seed, number, client = site['seed'], site['round'], site['client']
    if policy == 'per_client_and_round':
        stream = Stream(seed, number, client, group)
    elif policy == 'per_client':
        stream = Stream(seed, 0, client, group ^ name_hash('per client'))
    elif policy in ('pool', 'pool_per_round'):
        picked_in = 0 if policy == 'pool' else number
        pick = Stream(seed, picked_in, client, 'subfed seed_policy pool').below(count)
        stream = Stream(seed, 0, pick, group ^ name_hash('pool'))
    else:
        stream = Stream(seed, number // count, 0, group ^ name_hash('shared'))
    by_key = sorted(range(extent), key=lambda node: (stream.bits(node), node))
    return sorted(by_key[:length])


def prefix(site, rounding='floor', minimum=1):
    return list(range(kept(site['capacity'], site['extent'], rounding, minimum)))


def simple_ensemble(site, advance=0, rounding='floor', minimum=1):
    extent = site['extent']
    if extent == 0:
        return []
    length = kept(site['capacity'], extent, rounding, minimum)
    assert extent % length == 0
    number = (site['client'] + advance * site['round']) % (extent // length)
    return list(range(number * length, (number + 1) * length))


# --- output --------------------------------------------------------------------------------------

def spelled(nodes):
    """The nodes; of more than 64 their number, the FNV-1a of all and the first four."""
    text = ' '.join(map(str, nodes))
    if len(nodes) <= 64:
        return text
    return f'{len(nodes)} nodes {name_hash(text):016x} ' + ' '.join(map(str, nodes[:4]))


def hexadecimal(x, digits=16):
    return f'0x{x:0{digits}x}u'


def literal(x):
    """A signed 64-bit integer as C++ spells it."""
    return f'-{-x}' if x < 0 else str(x)


def quoted(text):
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '"'


def row(*cells):
    return '{' + ', '.join(cells) + '},\n'


def header(what):
    return ('// SPDX-License-Identifier: MIT\n'
            f'// {what} Made by make_golden.py; not to be edited.\n')


def capacity_text(capacity):
    """A ratio n/d, or the double that the decimal spells."""
    if '/' in capacity:
        return 'subfed::capacity::ratio(' + capacity.replace('/', ', ') + ')'
    return capacity if '.' in capacity else capacity + '.0'


def site(seed=0, round=0, client=0, group='', extent=0, capacity='1'):
    return dict(seed=seed, round=round, client=client, group=group, extent=extent,
                capacity=capacity)


def site_text(s):
    return ('{' + ', '.join([hexadecimal(s['seed']), f"{s['round']}u", f"{s['client']}u",
                             quoted(s['group']), literal(s['extent']),
                             capacity_text(s['capacity'])]) + '}')


BIG_SEED = 0xFEDCBA9876543210
FAR = (1 << 32) + 5
FARTHEST = MASK64


def philox_blocks():
    cases = [((0, 0, 0, 0), (0, 0)),
             ((MASK32,) * 4, (MASK32,) * 2),
             ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)),
             ((1, 0, 0, 0), (0, 0)), ((0, 1, 0, 0), (0, 0)), ((0, 0, 1, 0), (0, 0)),
             ((0, 0, 0, 1), (0, 0)), ((0, 0, 0, 0), (1, 0)), ((0, 0, 0, 0), (0, 1)),
             ((0x80000000, 0x7FFFFFFF, 0xDEADBEEF, 12345), (0x80000001, 0xCAFEBABE))]
    out = header('{counter}, {key}, {Philox4x32-10 of them}.')
    for counter, key in cases:
        out += row(*('{' + '{' + ', '.join(hexadecimal(w, 8) for w in words_) + '}' + '}'
                     for words_ in (counter, key, philox4x32(counter, key))))
    return out


def streams():
    addresses = [(0, 0, 0, ''), (1, 0, 0, ''), (0, 1, 0, ''), (0, 0, 1, ''), (0, 0, 0, 'fc1'),
                 (7, 3, 12, 'layer1.0.conv1'), (BIG_SEED, FAR, FAR + 1, 'hidden'),
                 (FARTHEST, FARTHEST, FARTHEST, 'f\u00fcnf')]
    out = header('{seed, a, b, purpose, i, word i of the stream}.')
    for seed, a, b, purpose in addresses:
        for i in [0, 1, 2, 3, 1000, (1 << 33) + 1, FARTHEST]:
            out += row(hexadecimal(seed), hexadecimal(a), hexadecimal(b),
                       quoted(purpose), hexadecimal(i),
                       hexadecimal(Stream(seed, a, b, purpose).bits(i)))
    return out


def below():
    out = header('{seed, bound, the first four of below(bound) of the stream (seed, 1, 2, "b")}.')
    for seed in [0, BIG_SEED]:
        for bound in [1, 2, 3, 10, 1000003, 1 << 32, (1 << 63) + 1, 3 << 62, FARTHEST]:
            stream = Stream(seed, 1, 2, 'b')
            out += row(hexadecimal(seed), hexadecimal(bound),
                       '{' + ', '.join(hexadecimal(stream.below(bound)) for _ in range(4)) + '}')
    return out


def scheme_random():
    policies = [('per_client_and_round', 1), ('per_client', 1), ('pool', 1), ('pool', 3),
                ('pool', 700000), ('pool_per_round', 3), ('shared', 1), ('shared', 5)]
    sites = [site(0, 0, 0, '', 5, '0.4'),
             site(1, 0, 0, 'hidden', 10, '0.5'),
             site(1, 0, 1, 'hidden', 10, '0.5'),
             site(1, 1, 0, 'hidden', 10, '0.5'),
             site(1, 0, 0, 'heads', 10, '0.5'),
             site(2, 0, 0, 'hidden', 10, '0.5'),
             site(BIG_SEED, FAR, 3, 'layer4.1.conv2', 64, '1/3'),
             site(FARTHEST, FARTHEST, FARTHEST, 'a', 17, '0.29'),
             site(BIG_SEED, 12, FAR, 'b', 1, '1/16'),
             site(3, 12, 4, 'b', 0, '1/2'),
             site(3, 12, 4, 'b', 8, '1'),
             site(42, 17, 9, 'wide', 5000, '1/2'),
             site(42, 17, 9, 'wide', 5000, '0.07'),
             site(42, FAR, 9, 'wide', 4999, '1/16')]
    out = header('{policy, its count, rounding, minimum, site, nodes}.')
    for policy, count in policies:
        for where in sites:
            for rounding, minimum in [('floor', 1), ('ceil', 1)]:
                out += random_row(policy, count, rounding, minimum, where)
    for minimum in [0, 3]:
        out += random_row('per_client_and_round', 1, 'floor', minimum,
                          site(5, 6, 7, 'small', 10, '1/16'))
        out += random_row('per_client_and_round', 1, 'nearest', minimum,
                          site(5, 6, 7, 'small', 10, '0.35'))
    return out


def random_row(policy, count, rounding, minimum, where):
    nodes = random(where, policy, count, rounding, minimum)
    return row(quoted(policy), str(count), f'subfed::rounding::{rounding}', str(minimum),
               site_text(where), quoted(spelled(nodes)))


def scheme_rolling():
    settings = [dict(), dict(walk='backward', rounding='ceil'), dict(step=3),
                dict(step=-1), dict(step=0), dict(step=1 << 40, walk='backward'),
                dict(phase=2), dict(phase=-7, walk='backward'), dict(client_phase=2),
                dict(client_phase=-3, phase=1, step=2, walk='backward'),
                dict(overlap='0'), dict(overlap='0.25'), dict(overlap='1'),
                dict(overlap='0.5', walk='backward', rounding='nearest'),
                dict(overlap='0.93'), dict(overlap='0.9', client_phase=5),
                dict(minimum=4), dict(minimum=0)]
    sites = [site(0, j, 0, 'g', 8, '3/8') for j in range(9)]
    sites += [site(0, 5, 1, 'g', 4, '1/2'), site(0, 5, 2, 'g', 6, '1/2'),
              site(9, 1000, 77, 'g', 100, '0.29'), site(9, FAR, 78, 'g', 100, '0.07'),
              site(9, FARTHEST, FARTHEST, 'g', 97, '0.5'), site(9, FAR, 2, 'g', 100, '1'),
              site(9, 7, 4, 'g', 5000, '1/16'), site(9, FAR * 3, FAR, 'g', 4999, '0.5'),
              site(9, 3, 3, 'g', 1, '1/16'), site(9, 3, 3, 'g', 0, '1/16'),
              site(9, 13, 3, 'g', 10, '1/16')]
    out = header('{step, overlap or -1, walk, rounding, minimum, phase, client_phase, site,'
                 ' nodes}.')
    for chosen in settings:
        for where in sites:
            given = dict(step=1, overlap=None, walk='forward', rounding='floor', minimum=1, phase=0,
                         client_phase=0) | chosen
            out += row(literal(given['step']), given['overlap'] or '-1',
                       f"subfed::direction::{given['walk']}",
                       f"subfed::rounding::{given['rounding']}", str(given['minimum']),
                       literal(given['phase']), literal(given['client_phase']), site_text(where),
                       quoted(spelled(rolling(where, **given))))
    return out


def scheme_prefix():
    out = header('{rounding, minimum, site, nodes}.')
    for rounding in ['floor', 'ceil', 'nearest']:
        for minimum in [0, 1, 3]:
            for extent in [0, 1, 3, 10, 16, 100]:
                for capacity in ['1/16', '0.07', '1/3', '0.29', '0.5', '0.55', '1']:
                    where = site(4, FAR, 6, 'g', extent, capacity)
                    out += row(f'subfed::rounding::{rounding}', str(minimum), site_text(where),
                               quoted(spelled(prefix(where, rounding, minimum))))
    return out


def scheme_simple_ensemble():
    out = header('{advance, site, nodes}.')
    for advance in [0, 1, 3, FARTHEST]:
        for round_, client in [(0, 0), (0, 1), (1, 0), (3, 2), (FAR, 5), (FARTHEST, FARTHEST)]:
            for extent, capacity in [(0, '1/2'), (1, '1/2'), (8, '1/4'), (12, '1/3'), (10, '1'),
                                     (5000, '1/50'), (100, '0.07')]:
                if extent and extent % kept(capacity, extent, 'floor', 1):
                    continue
                where = site(8, round_, client, 'g', extent, capacity)
                out += row(f'{advance}u', site_text(where), quoted(spelled(simple_ensemble(where, advance))))
    return out


def capacities():
    out = header('{capacity, extent, floor, ceil, nearest}, each with minimum 0.')
    decimals = ['0.07', '0.14', '0.29', '0.55', '0.57', '0.1', '0.3', '0.5', '0.0625', '0.001',
                '0.999', '0.35', '1/3', '2/3', '1/16', '1/7', '6/7', '1', '1/2147483647',
                '2147483646/2147483647']
    for capacity in decimals:
        for extent in [0, 1, 2, 3, 7, 10, 16, 50, 64, 100, 1000, 4999, 5000, 1 << 20]:
            out += row(capacity_text(capacity), str(extent),
                       *(str(kept(capacity, extent, mode, 0)) for mode in
                         ['floor', 'ceil', 'nearest']))
    return out


def main():
    here = Path(__file__).parent
    for name, content in [('philox_blocks', philox_blocks()), ('streams', streams()),
                          ('below', below()), ('capacity', capacities()),
                          ('random', scheme_random()), ('rolling', scheme_rolling()),
                          ('prefix', scheme_prefix()), ('simple_ensemble', scheme_simple_ensemble())]:
        (here / f'{name}.inc').write_text(content)


if __name__ == '__main__':
    main()
