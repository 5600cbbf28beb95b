#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Computes the values that theory/*.hpp must give, by other means and in other arithmetic.

Fractions where sums are finite, decimals of 60 and more digits elsewhere; shares no code and no
formula with the library where there is a second one. Writes the theory_*.inc files next to it:

    python3 tests/golden/make_theory.py

It takes about a minute.
"""

from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import combinations
from math import comb, factorial
from pathlib import Path

DIGITS = 17


# --- chosen_indices.hpp --------------------------------------------------------------------------

def chosen_by_fractions(indices, times):
    """Mean and variance of the rounds, from [Rolex, Lemma 2] expanded: exact.

    With Q = S_m(t) e^-t, 1 - (1 - Q)^I = -sum_k C(I,k) (-Q)^k, and the integral of t^n e^(-kt) is
    n! / k^(n+1).
    """
    base = [Fraction(1, factorial(l)) for l in range(times)]
    power = [Fraction(1)]
    first = second = Fraction(0)
    for k in range(1, indices + 1):
        longer = [Fraction(0)] * (len(power) + times - 1)
        for i, a in enumerate(power):
            for j, b in enumerate(base):
                longer[i + j] += a * b
        power = longer
        sign = -(-1) ** k * comb(indices, k)
        first += sign * sum(a * factorial(n) / Fraction(k) ** (n + 1) for n, a in enumerate(power))
        second += sign * sum(a * factorial(n + 1) / Fraction(k) ** (n + 2)
                             for n, a in enumerate(power))
    mean = indices * first
    # second is half the mean square of the time; a gamma distributed time has variance N beyond N's
    return mean, 2 * indices ** 2 * second - mean - mean ** 2


def chosen_by_decimals(indices, times, per_unit=96):
    """The same by the trapezoidal rule in log t on the integrals of the tail."""
    getcontext().prec = 60
    step = Decimal(1) / per_unit
    first = second = Decimal(0)
    u = Decimal(-75)
    if times >= 300:
        # Up to here the tail is 1 to 80 digits, and the sum a geometric series.
        u = Decimal(times / 4).ln()
        for power in (1, 2):
            below = ((u - step) * power).exp() / (1 - (-step * power).exp())
            first, second = (below, second) if power == 1 else (first, below)
    while True:
        t = u.exp()
        term = (-t).exp()
        tail = term
        for l in range(1, times):
            term *= t / l
            tail += term
        beyond = 1 - (1 - tail) ** indices
        if t > times and beyond < Decimal(10) ** -45:
            break
        first += t * beyond
        second += t * t * beyond
        u += step
    mean = indices * first * step
    return mean, 2 * indices ** 2 * second * step - mean - mean ** 2


def check_same(one, other):
    for a, b in zip(one, other):
        assert abs(a - b) < Decimal(10) ** -19 * a, (a, b)


def chosen():
    out = ''
    for indices in [1, 2, 3, 5, 8, 17]:
        for times in [1, 2, 3, 4]:
            exact = [decimal_of(x) for x in chosen_by_fractions(indices, times)]
            if indices > 1:
                check_same(exact, chosen_by_decimals(indices, times))
            out += row(indices, times, *exact)
    for indices in [2, 10, 50, 100, 333, 1000, 10 ** 6, 10 ** 9]:
        for times in [1, 2, 3, 5, 10, 20, 50]:
            fine = 4 if indices > 1000 else 1
            values = chosen_by_decimals(indices, times, 96 * fine)
            if indices in (2, 333, 10 ** 9):
                check_same(values, chosen_by_decimals(indices, times, 131 * fine))
            out += row(indices, times, *values)
    for indices, times in [(2, 1000), (1000, 300), (10 ** 9, 1000)]:
        values = chosen_by_decimals(indices, times, 1200)
        check_same(values, chosen_by_decimals(indices, times, 1531))
        out += row(indices, times, *values)
    return header('{I, m, mean, variance}: rounds until each of I was chosen m times.') + out


# --- random_cover.hpp ----------------------------------------------------------------------------

def stay(extent, kept, unseen):
    """P(none of `unseen` given nodes is among `kept` random ones)."""
    return Fraction(comb(extent - unseen, kept), comb(extent, kept))


def cover_by_fractions(extent, clients):
    """Mean and variance of the first full cover by inclusion and exclusion; `clients` is a list of
    lists of (kept, share)."""
    first = second = Fraction(0)
    for i in range(1, extent + 1):
        q = Fraction(1)
        for mix in clients:
            q *= sum(share * stay(extent, kept, i) for kept, share in mix)
        sign = -(-1) ** i * comb(extent, i)
        # sums of q^R and of (2 R + 1) q^R over R >= 0
        first += sign / (1 - q)
        second += sign * (1 + q) / (1 - q) ** 2
    return first, second - first ** 2


def tail_by_decimals(extent, kept, rounds):
    """P(T > rounds) by inclusion and exclusion, with as many digits as cancellation takes."""
    # The terms are below lambda^i / i!, and end where that is nothing.
    sum_ = Decimal(0)
    q = Decimal(1)
    binomial = Decimal(1)
    for i in range(1, extent - kept + 1):
        q *= Decimal(extent - kept - i + 1) / Decimal(extent - i + 1)
        binomial *= Decimal(extent - i + 1) / Decimal(i)
        term = binomial * q ** rounds
        sum_ += term if i % 2 else -term
        if term < Decimal(10) ** -40:
            break
    return sum_


def cover_by_decimals(extent, kept):
    """Mean and variance as sums of the tail. Where lambda > 700 the tail is 1 to 300 digits."""
    getcontext().prec = 700
    mean = Decimal(0)
    square = Decimal(0)
    rounds = 0
    while True:
        expected = extent * (1 - Decimal(kept) / extent) ** rounds
        p = Decimal(1) if expected > 700 else tail_by_decimals(extent, kept, rounds)
        mean += p
        square += (2 * rounds + 1) * p
        rounds += 1
        if expected < Decimal(10) ** -30:
            return mean, square - mean ** 2


MIX = [(1, Fraction(1, 2)), (3, Fraction(1, 4)), (0, Fraction(1, 4))]


def cover():
    out = ''
    for extent, fixed in [(1, [1]), (2, [1]), (7, [3]), (7, [7]), (10, [1]), (13, [2, 5]),
                          (13, [0, 4, 4]), (40, [10]), (64, [4, 8, 16, 32]), (200, [13]),
                          (512, [32]), (512, [1])]:
        clients = [[(kept, Fraction(1))] for kept in fixed]
        out += row(extent, '{' + ', '.join(map(str, fixed)) + '}', *map(decimal_of,
                   cover_by_fractions(extent, clients)))
    for extent, kept in [(4096, 256), (20000, 1250), (100000, 99900)]:
        out += row(extent, '{' + str(kept) + '}', *cover_by_decimals(extent, kept))
    return header('{K, L of each client, mean, variance}: rounds until all nodes were held.') + out


def cover_drawn():
    out = ''
    for extent, clients in [(4, 1), (9, 1), (9, 3), (33, 10)]:
        out += row(extent, clients, *map(decimal_of, cover_by_fractions(extent, [MIX] * clients)))
    return header('{K, clients, mean, variance}: as theory_cover.inc, each client keeps 1 node with '
                  'probability 1/2, 3 or 0 with 1/4 each.') + out


def cover_tails():
    out = ''
    getcontext().prec = 120
    for extent, kept in [(10, 3), (64, 16), (512, 32), (512, 1)]:
        typical = float(cover_by_fractions(extent, [[(kept, Fraction(1))]])[0])
        for factor in [0.7, 0.9, 1, 1.2, 1.6, 2.5]:
            rounds = int(typical * factor)
            exact = sum(-(-1) ** i * comb(extent, i) * stay(extent, kept, i) ** rounds
                        for i in range(1, extent + 1)) if rounds < 100 else None
            p = tail_by_decimals(extent, kept, rounds)
            if exact is not None:
                assert abs(decimal_of(exact) - p) < Decimal(10) ** -35
            out += row(extent, kept, rounds, p)
    return header('{K, L, R, P(T > R)}: R rounds do not hold all nodes.') + out


def cover_times_by_sets(extent, clients, times):
    """Mean and variance until each node was held `times` times: a Markov chain over the sorted counts
    of all nodes, solved in fractions."""
    def after(counts, kept):
        out = {}
        for chosen_ in combinations(range(extent), kept):
            new = tuple(sorted(min(times, c + (n in chosen_)) for n, c in enumerate(counts)))
            out[new] = out.get(new, Fraction(0)) + Fraction(1, comb(extent, kept))
        return out

    def round_(counts):
        now = {counts: Fraction(1)}
        for kept in clients:
            then = {}
            for c, p in now.items():
                for d, q in after(c, kept).items():
                    then[d] = then.get(d, Fraction(0)) + p * q
            now = then
        return now

    known = {(times,) * extent: (Fraction(0), Fraction(0))}

    def moments(counts):
        if counts not in known:
            outcomes = round_(counts)
            back = outcomes.pop(counts, Fraction(0))
            first = sum(p * moments(c)[0] for c, p in outcomes.items())
            second = sum(p * moments(c)[1] for c, p in outcomes.items())
            mean = (1 + first) / (1 - back)
            known[counts] = mean, (1 + 2 * (mean - 1) + second) / (1 - back)
        return known[counts]

    mean, square = moments((0,) * extent)
    return mean, square - mean ** 2


def cover_times():
    out = ''
    for extent, clients, times in [(1, [1], 3), (3, [1], 2), (3, [2], 3), (4, [2], 2), (4, [3], 4),
                                   (5, [2], 3), (5, [1, 3], 2), (6, [3], 2), (6, [4], 3)]:
        out += row(extent, '{' + ', '.join(map(str, clients)) + '}', times,
                   *map(decimal_of, cover_times_by_sets(extent, clients, times)))
    return header('{K, L of each client, times, mean, variance}: rounds until all nodes were held so '
                  'often.') + out


# --- random_counts.hpp ---------------------------------------------------------------------------

def counts():
    """Gini by the distribution of the difference of two counts, in fractions."""
    out = ''
    for extent, kept, rounds in [(1, [1], 4), (2, [1], 1), (2, [1], 2), (2, [1], 7), (3, [1], 5),
                                 (10, [3], 1), (10, [3], 20), (64, [4, 8, 16, 32, 64], 10),
                                 (100, [99], 33), (1000, [1], 200), (512, [32, 32, 128], 60)]:
        difference = {0: Fraction(1)}
        mean = variance = Fraction(0)
        unseen = Fraction(1)
        for _ in range(rounds):
            for L in kept:
                step = Fraction(L * (extent - L), extent * (extent - 1)) if extent > 1 else Fraction(0)
                new = {}
                for d, p in difference.items():
                    for e, q in ((d, 1 - 2 * step), (d + 1, step), (d - 1, step)):
                        new[e] = new.get(e, Fraction(0)) + p * q
                difference = new
                share = Fraction(L, extent)
                mean += share
                variance += share * (1 - share)
                unseen *= 1 - share
        pairs = sum(abs(d) * p for d, p in difference.items())
        gini = (extent - 1) * pairs / (2 * extent * mean)
        out += row(extent, '{' + ', '.join(map(str, kept)) + '}', rounds,
                   *map(decimal_of, (mean, variance, unseen, gini)))
    return header('{K, L of each client, R, mean, variance, unseen share, Gini}: expected of the '
                  'counts.') + out


# --- output --------------------------------------------------------------------------------------

def decimal_of(x):
    """A fraction to 60 digits."""
    x = Fraction(x)
    getcontext().prec = 60
    return Decimal(x.numerator) / Decimal(x.denominator)


def row(*cells):
    text = [f'{c:.{DIGITS - 1}e}' if isinstance(c, Decimal) else str(c) for c in cells]
    return '{' + ', '.join(text) + '},\n'


def header(what):
    return ('// SPDX-License-Identifier: MIT\n'
            f'// {what} Made by make_theory.py; not to be edited.\n')


def main():
    here = Path(__file__).parent
    for name, content in [('chosen', chosen), ('cover', cover), ('cover_drawn', cover_drawn),
                          ('cover_tails', cover_tails), ('cover_times', cover_times),
                          ('counts', counts)]:
        (here / f'theory_{name}.inc').write_text(content())


if __name__ == '__main__':
    main()
