"""The metrics by their definitions: plain loops over fractions, slow and obvious.

A row is (probabilities, label, weight), all exact. What has no exact value is in long arithmetic.
"""

from fractions import Fraction

import mpmath

mpmath.mp.dps = 40


def mean(rows, value):
    """Return the weighted mean of a value of each row."""
    return sum(w * value(p, y) for p, y, w in rows) / sum(w for _, _, w in rows)


def accuracy(rows):
    return mean(rows, right)


def right(p, y):
    return Fraction(p.index(max(p)) == y)


def brier(rows):
    return mean(rows, lambda p, y: sum((q - (k == y)) ** 2 for k, q in enumerate(p)))


def overconfidence(rows):
    return mean(rows, lambda p, y: max(p) - right(p, y))


def nll(rows):
    """Return minus the mean log; infinite where the label had probability 0."""
    if any(p[y] == 0 for p, y, _ in rows):
        return mpmath.inf
    return mean([(p, y, real(w)) for p, y, w in rows], lambda p, y: -mpmath.log(real(p[y])))


def real(x):
    return mpmath.mpf(x.numerator) / x.denominator


def aurc(rows):
    """Return the mean over rows of the error rate among all rows at least as sure."""

    def risk(p, y):
        answered = [row for row in rows if max(row[0]) >= max(p)]
        return 1 - accuracy(answered)

    return mean(rows, risk)


def width_edges(events, bins):
    return [Fraction(i, bins) for i in range(bins + 1)]


def mass_edges(events, bins):
    """Return the largest confidences whose tied group has its middle at or before i / M of the weight."""
    total = sum(w for _, _, w in events)

    middle = {
        c: sum(w for d, _, w in events if d < c) + sum(w for d, _, w in events if d == c) / 2
        for c, _, _ in events
    }
    inner = [
        max((c for c in middle if middle[c] <= Fraction(i, bins) * total), default=Fraction(0))
        for i in range(1, bins)
    ]
    return [Fraction(0), *inner, Fraction(1)]


def gaps(events, bins, strategy):
    """Return share, gap, rate and weight of each bin that holds events (probability, outcome, weight)."""
    edges = {"width": width_edges, "mass": mass_edges}[strategy](events, bins)
    total, found = sum(w for _, _, w in events), []
    for i in range(bins):
        inside = [e for e in events if edges[i] < e[0] <= edges[i + 1] or (i == 0 and e[0] <= edges[1])]
        weight = sum(w for _, _, w in inside)
        if weight:
            rate = sum(w * h for _, h, w in inside) / weight
            found.append((weight / total, rate - sum(w * c for c, _, w in inside) / weight, rate, weight))
    return found


def top_events(rows):
    return [(max(p), right(p, y), w) for p, y, w in rows]


def class_events(rows, k):
    return [(p[k], Fraction(y == k), w) for p, y, w in rows]


def ece(rows, bins, strategy):
    return sum(share * abs(gap) for share, gap, _, _ in gaps(top_events(rows), bins, strategy))


def mce(rows, bins, strategy):
    return max(abs(gap) for _, gap, _, _ in gaps(top_events(rows), bins, strategy))


def classwise_ece(rows, bins, strategy):
    n_classes = len(rows[0][0])
    errors = [
        sum(share * abs(gap) for share, gap, _, _ in gaps(class_events(rows, k), bins, strategy))
        for k in range(n_classes)
    ]
    return sum(errors) / n_classes


def debiased_ece(rows, bins, strategy):
    """Return the sum of 2 |g| less the mean of |N(g, v)|, in long arithmetic; not below 0."""
    total = mpmath.mpf(0)
    for share, gap, rate, weight in gaps(top_events(rows), bins, strategy):
        size, variance = real(abs(gap)), real(rate * (1 - rate) / weight)
        folded = size
        if variance:
            folded = mpmath.sqrt(2 * variance / mpmath.pi) * mpmath.exp(-(size**2) / (2 * variance))
            folded += size * mpmath.erf(size / mpmath.sqrt(2 * variance))
        total += real(share) * (2 * size - folded)
    return max(mpmath.mpf(0), total)


def spiegelhalter(events):
    """Return z; 0 where nothing is left to chance and the outcomes are as expected, else infinite."""
    total = sum(w * (h - c) * (1 - 2 * c) for c, h, w in events)
    return in_deviations(total, sum((w * (1 - 2 * c)) ** 2 * c * (1 - c) for c, _, w in events))


def cumulative(events, statistic):
    """Return the range of the cumulated residuals, or the largest of their absolute values."""
    sums = [Fraction(0)]
    for level in sorted({c for c, _, _ in events}):
        sums.append(sums[-1] + sum(w * (h - c) for c, h, w in events if c == level))
    size = max(sums) - min(sums) if statistic == "kuiper" else max(map(abs, sums))
    return in_deviations(size, sum(w**2 * c * (1 - c) for c, _, w in events))


def in_deviations(total, variance):
    if variance:
        return real(total) / mpmath.sqrt(real(variance))
    return mpmath.mpf(0) if total == 0 else mpmath.sign(total.numerator) * mpmath.inf


def brownian_survival(size, statistic):
    """Return the probability that Brownian motion on [0, 1] exceeds this range, or this absolute value.

    Inside an interval of length x the walk is a sum of sines; the n-th has the rate (n pi / x)^2 / 2.
    With the start in the middle this gives the absolute value. The integral over all starts is the mean of
    (x - range), where that is above 0; its derivative by x gives the range.
    """
    if size == 0 or mpmath.isinf(size):
        return mpmath.mpf(size == 0)
    length = size if statistic == "kuiper" else 2 * size
    inside, n, rate = mpmath.mpf(0), 1, mpmath.mpf(0)
    while rate < 110:
        rate = (n * mpmath.pi / length) ** 2 / 2
        sign = (-1) ** (n // 2)
        part = 4 / (rate * length**2) + 8 / length**2 if statistic == "kuiper" else 4 * sign / (n * mpmath.pi)
        inside += part * mpmath.exp(-rate)
        n += 2
    return 1 - inside
