# SPDX-License-Identifier: MIT
"""Means, how far they spread, and differences of pairs."""
import math
import statistics
from dataclasses import dataclass

mean = statistics.fmean


def deviation(values):
    """Standard deviation of a sample (divided by n - 1); None for fewer than two values."""
    return statistics.stdev(values) if len(values) > 1 else None


def gini(counts):
    """Gini coefficient: 0 where all counts are equal, near 1 where one has everything."""
    total, n = sum(counts), len(counts)
    if total == 0:
        return 0.0
    ranked = sum((2 * i - n - 1) * c for i, c in enumerate(sorted(counts), start=1))
    return ranked / (n * total)


# 0.975 quantile of Student's t by degrees of freedom, 1 to 30.
_T = [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
      2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
      2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423]


def t_quantile(degrees):
    """0.975 quantile of Student's t."""
    return _T[degrees - 1] if degrees <= len(_T) else 1.96 + 2.5 / degrees


@dataclass(frozen=True)
class Paired:
    """Differences of pairs: both of a pair have the same seed."""
    count: int
    mean: float
    error: float | None  # standard error of the mean; None for fewer than two pairs
    low: float | None    # 95 % interval of the mean
    high: float | None
    above: int           # how many differences are above 0


def paired(first, second):
    """`first` minus `second`, by the keys (seeds) that both have; None where there is none."""
    keys = sorted(set(first) & set(second))
    if not keys:
        return None
    values = [first[k] - second[k] for k in keys]
    centre, spread = mean(values), deviation(values)
    error = low = high = None
    if spread is not None:
        error = spread / math.sqrt(len(values))
        reach = t_quantile(len(values) - 1) * error
        low, high = centre - reach, centre + reach
    return Paired(len(values), centre, error, low, high, sum(v > 0 for v in values))


@dataclass(frozen=True)
class Apart:
    """Difference of two means whose samples have nothing in common, by Welch."""
    mean: float
    error: float
    low: float   # 95 % interval
    high: float


def apart(first, second):
    """Mean of `first` minus that of `second`; None unless both have two values or more."""
    if len(first) < 2 or len(second) < 2:
        return None
    a, b = (statistics.variance(v) / len(v) for v in (first, second))
    centre, error = mean(first) - mean(second), math.sqrt(a + b)
    if error == 0:
        return Apart(centre, 0.0, centre, centre)
    # Whole degrees of freedom, rounded down: a wider interval, never a narrower one.
    degrees = (a + b) ** 2 / (a * a / (len(first) - 1) + b * b / (len(second) - 1))
    reach = t_quantile(max(1, math.floor(degrees + 1e-9))) * error
    return Apart(centre, error, centre - reach, centre + reach)


def correlation(x, y):
    """Pearson's; None where one of the two does not vary."""
    try:
        return statistics.correlation(x, y)
    except statistics.StatisticsError:
        return None
