"""LTS and HnLTS warn if there are no more rows than parameters."""

import warnings

import numpy as np
import pytest

from temperance import make_calibrator
from temperance.data import simulate

CLASSES = 6


def warned(method, n_rows, sample_weight=None):
    task = simulate(n_rows, CLASSES, random_state=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_calibrator(method).fit(task.logits, task.labels, sample_weight)
    return [str(warning.message) for warning in caught if "parameters, so it needs" in str(warning.message)]


@pytest.mark.parametrize(("method", "parameters"), [("lts", 7), ("hnlts", 8)])
def test_as_many_rows_as_parameters_are_too_few_and_one_more_is_not(method, parameters):
    (words,) = warned(method, parameters)
    assert f"has {parameters} parameters" in words
    assert f"found {parameters}." in words
    assert "Use bayes or ts" in words
    assert warned(method, parameters + 1) == []


@pytest.mark.parametrize("method", ["ts", "hts", "bayes"])
def test_methods_without_this_limit_give_no_warning(method):
    assert warned(method, 7) == []


def test_rows_of_weight_0_do_not_count():
    (words,) = warned("lts", 40, np.arange(40) < 7)
    assert "found 7." in words
    assert warned("lts", 40, np.arange(40) < 8) == []
