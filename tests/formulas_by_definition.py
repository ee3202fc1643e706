"""Each method's formula as docs/file-format.md has it, row by row in arithmetic of 40 digits."""

import mpmath
from mpmath import mpf

mpmath.mp.dps = 40
NEGATIVE = mpf("-inf")


def log_sum(z):
    top = max(z)
    return top + mpmath.log(mpmath.fsum(mpmath.exp(x - top) for x in z if x != NEGATIVE))


def softmax(z):
    total = log_sum(z)
    return [mpmath.exp(x - total) if x != NEGATIVE else mpf(0) for x in z]


def h(z):
    """Return the log of the entropy over log K, not below -20."""
    p = softmax(z)
    entropy = -mpmath.fsum(q * mpmath.log(q) for q in p if q)
    return max(mpmath.log(entropy / mpmath.log(len(z))), mpf(-20)) if entropy > mpf(10) ** -30 else mpf(-20)


def limited(T, parameters):
    low, high = parameters["temperature_limits"]
    return min(max(T, mpf(low)), mpf(high))


def softplus(a):
    return mpmath.log(1 + mpmath.exp(a))


def centred(z):
    mean = mpmath.fsum(z) / len(z)
    return [x - mean for x in z]


def ts(p, z):
    return softmax([x / mpf(p["temperature"]) for x in z])


def linear(p, z):
    a = mpf(p["intercept"])
    a += mpf(p["entropy_weight"]) * h(z) if "entropy_weight" in p else 0
    if "class_weights" in p:
        a += mpmath.fsum(mpf(w) * x for w, x in zip(p["class_weights"], centred(z), strict=True))
    return softmax([x / limited(softplus(a), p) for x in z])


def bts(p, z):
    confidence = max(softmax(z))
    place = sum(confidence > mpf(edge) for edge in p["edges"])
    return softmax([x / mpf(p["temperatures"][place]) for x in z])


def ets(p, z):
    possible = sum(x != NEGATIVE for x in z)
    tempered, raw = softmax([x / mpf(p["temperature"]) for x in z]), softmax(z)
    w = [mpf(one) for one in p["weights"]]
    uniform = [mpf(x != NEGATIVE) / possible for x in z]
    return [w[0] * a + w[1] * b + w[2] * c for a, b, c in zip(tempered, raw, uniform, strict=True)]


def mapped(p, z):
    """Return -map(-log softmax(z / T0))."""
    row = [x / mpf(p["reference"]) for x in z]
    total = log_sum(row)
    knots, slopes = [mpf(k) for k in p["map_knots"]], [mpf(s) for s in p["map_slopes"]]

    def rise(e):
        ends = [*knots[1:], mpf("inf")]
        return mpmath.fsum(s * (min(e, b) - a) for s, a, b in zip(slopes, knots, ends, strict=True) if e > a)

    return [-rise(total - x) if x != NEGATIVE else NEGATIVE for x in row]


def mono(p, z):
    return softmax(mapped(p, z))


def shape(p, z):
    """Return (1, standardised features) of a row; gaps leave out impossible classes."""
    row = [x / mpf(p["reference"]) for x in z]
    possible = sorted((x for x in row if x != NEGATIVE), reverse=True)
    to_third = possible[0] - possible[min(2, len(possible) - 1)]
    to_mean = possible[0] - mpmath.fsum(possible) / len(possible)
    f = [h(row), h(row) ** 2 / 10, mpmath.log(1 + to_third), mpmath.log(1 + to_mean)]
    return [mpf(1), *((a - mpf(c)) / mpf(s) for a, c, s in zip(f, p["centre"], p["spread"], strict=True))]


def quadrature():
    """Return the nodes and weights of Gauss-Hermite quadrature with five points."""
    root = mpmath.sqrt(10)
    pairs = [(mpf(0), mpf(8) / 15)]
    for sign in (1, -1):
        node, weight = mpmath.sqrt(5 - sign * root), (7 + 2 * sign * root) / 60
        pairs += [(node, weight), (-node, weight)]
    return pairs


def bayes(p, z):
    x, k, u = shape(p, z), z.index(max(z)), mapped(p, z)
    own = [mpf(c) for c in p["class_covariance"][k]]
    mean = mpmath.fdot(x, map(mpf, p["coefficients"])) + mpf(p["class_shift"][k])
    variance = mpmath.fsum(
        a * b * mpf(p["covariance"][i][j]) for i, a in enumerate(x) for j, b in enumerate(x)
    )
    variance += 2 * mpmath.fdot(x, own[:5]) + own[5]
    s = mpmath.sqrt(variance * mpf(p.get("averaged_variance", 1)))
    average = [mpf(0)] * len(z)
    for node, weight in quadrature():
        scale = mpf(p["reference"]) / limited(mpmath.exp(mean + s * node), p)
        q = softmax([scale * a if a != NEGATIVE else NEGATIVE for a in u])
        average = [a + weight * b for a, b in zip(average, q, strict=True)]
    possible, uniform = sum(x != NEGATIVE for x in z), mpf(p["uniform_weight"])
    return [
        (1 - uniform) * a + (uniform / possible if b != NEGATIVE else 0)
        for a, b in zip(average, z, strict=True)
    ]


def biased(p, j, logs):
    """Return the probabilities of one kind of class bias; `logs` are -inf for the classes it leaves out."""
    possible = [k for k, a in enumerate(logs) if a != NEGATIVE]
    u = [mpf(p["bias_betas"][j]) * a + mpf(b) for a, b in zip(logs, p["biases"][j], strict=True)]
    if j > 0 and "interactions" in p:
        floored = {k: max(logs[k], mpf(-12)) for k in possible}
        centre = -mpmath.log(2) if len(logs) == 2 else mpmath.fsum(floored.values()) / len(possible)
        for k in possible:
            row = p["interactions"][j - 1][k]
            u[k] += mpmath.fsum(mpf(row[i]) * (floored[i] - centre) for i in possible)
    return softmax(u)


def bayes_bias(p, z):
    probabilities, weights = bayes(p, z), [mpf(w) for w in p["bias_weights"]]
    row = [x / mpf(p["reference"]) for x in z]
    total, far = log_sum(row), max(row) - 20000
    of_logits = [max(x - total, mpf(-12)) if x > far else NEGATIVE for x in row]
    calibrated = [mpmath.log(q) if q else NEGATIVE for q in probabilities]
    result = [(1 - mpmath.fsum(weights)) * q for q in probabilities]
    for j, weight in enumerate(weights):
        part = biased(p, j, calibrated if j < 2 else of_logits)
        result = [a + weight * b for a, b in zip(result, part, strict=True)]
    return result


def pts(p, z):
    largest = sorted(centred(z), reverse=True)[: len(p["input_mean"])]
    x = [(a - mpf(m)) / mpf(s) for a, m, s in zip(largest, p["input_mean"], p["input_scale"], strict=True)]
    n_layers = sum(name.endswith("_weights") for name in p)
    for layer in range(1, n_layers + 1):
        weights, biases = p[f"layer_{layer}_weights"], p[f"layer_{layer}_biases"]
        columns = zip(*weights, strict=True)
        x = [
            mpmath.fsum(a * mpf(w) for a, w in zip(x, column, strict=True)) + mpf(b)
            for column, b in zip(columns, biases, strict=True)
        ]
        x = [max(a, mpf(0)) for a in x] if layer < n_layers else x
    return softmax([one / limited(softplus(x[0]), p) for one in z])


FORMULAS = {
    "pts": pts,
    "ts": ts,
    "lts": linear,
    "hts": linear,
    "hnlts": linear,
    "bts": bts,
    "ets": ets,
    "mono": mono,
    "bayes": bayes,
    "bayes-bias": bayes_bias,
}
