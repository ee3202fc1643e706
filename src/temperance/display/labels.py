"""Names and numbers as figures write them."""

from __future__ import annotations

from temperance.metrics import METRICS

_SMALLEST = 1e-9  # of a probability that is worth writing


def written(probability: float) -> str:
    """Write a probability with two digits.

    Examples
    --------
    >>> written(0.00123), written(8.3e-7), written(1e-30)
    ('0.0012', '8.3e-7', 'below 1e-9')
    """
    if probability < _SMALLEST:
        return f"below {short_exponent(f'{_SMALLEST:g}')}"
    return short_exponent(f"{probability:.2g}")


def short_exponent(number: str) -> str:
    """Return a number without the zero that Python writes in an exponent: 1e-05 -> 1e-5."""
    return number.replace("e-0", "e-").replace("e+0", "e+")


def shorten(name: str, most: int) -> str:
    """Shorten a name in its middle: long names often differ at their ends.

    Examples
    --------
    >>> shorten("cancer-associated stroma", 16)
    'cancer-ass…troma'
    """
    if len(name) <= most:
        return name
    kept = (most - 1) // 3
    return f"{name[: most - 1 - kept]}\N{HORIZONTAL ELLIPSIS}{name[len(name) - kept :]}"


def metric_in_words(metric: str) -> str:
    """Return the name of a metric as it is written; one of the user's own keeps its name.

    Examples
    --------
    >>> metric_in_words("smooth_ece"), metric_in_words("my_metric")
    ('smooth ECE', 'my metric')
    """
    return METRICS[metric].label if metric in METRICS else metric.replace("_", " ")
