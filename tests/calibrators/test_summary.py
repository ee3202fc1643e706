"""The summary of a fitted calibrator: sentences that follow from its numbers."""

import re
from dataclasses import replace

import numpy as np
import pytest

from temperance import (
    BinwiseTemperatureScaling,
    EntropyTemperatureScaling,
    InputError,
    LinearTemperatureScaling,
    TemperatureScaling,
    make_calibrator,
)
from temperance.data import simulate
from temperance.formulas.bts import BinwiseFormula
from temperance.formulas.ts import SingleTemperatureFormula


def text(calibrator):
    """Return the summary without its line breaks."""
    return calibrator.summary().replace("\n ", "")


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (3.0, r"overconfident; its logits are 3\.\d* times too large"),
        (0.25, r"underconfident; its logits are (4|3\.9|4\.)\d* times too small"),
    ],
)
def test_ts_gives_the_direction_and_size_of_the_miscalibration(factor, words):
    task = simulate(20_000, 5, temperature=factor, entropy_slope=0.0, class_spread=0.0)
    assert re.search(words, text(TemperatureScaling().fit(task.logits, task.labels)))


def test_ts_says_when_the_confidence_is_right():
    task = simulate(5_000, 5, temperature=1.0, entropy_slope=0.0, class_spread=0.0)
    calibrator = TemperatureScaling().fit(task.logits, task.labels)
    nearly = replace(calibrator.model_, formula=SingleTemperatureFormula(1.001))
    calibrator.model_ = nearly
    assert "neither over- nor underconfident on average" in calibrator.summary()


def test_a_fitted_number_cannot_be_changed_by_hand():
    task = simulate(200, 3)
    calibrator = TemperatureScaling().fit(task.logits, task.labels)
    with pytest.raises(AttributeError, match="temperature_ is a number of the fitted model"):
        calibrator.temperature_ = 2.0
    with pytest.raises(AttributeError, match="cannot assign"):
        calibrator.model_.formula.temperature = 2.0


@pytest.mark.parametrize(
    ("slope", "words"),
    [
        (0.3, "unsure predictions need a higher temperature than sure ones"),
        (-0.3, "sure predictions need a higher temperature than unsure ones"),
        (0.0, "no clear relation"),
    ],
)
def test_hts_says_which_rows_are_overconfident(slope, words):
    task = simulate(5_000, 5, entropy_slope=slope, class_spread=0.0, random_state=2)
    calibrator = EntropyTemperatureScaling().fit(task.logits, task.labels)
    assert f": {words}" in text(calibrator)
    weight, error = calibrator.entropy_weight_, calibrator.standard_errors_["entropy_weight"]
    assert (abs(weight) < 2 * error) == (slope == 0)


def test_lts_names_the_most_overconfident_class_first_with_its_error():
    task = simulate(5_000, 6, random_state=1)
    calibrator = LinearTemperatureScaling().fit(task.logits, task.labels)
    worst = int(np.argmax(calibrator.class_weights_))
    error = calibrator.standard_errors_["class_weights"][worst]
    lines = calibrator.summary().splitlines()
    at = lines.index("w_L, most overconfident classes (their logits raise T):")
    assert lines[at + 1] == f"  class {worst}: {calibrator.class_weights_[worst]:.4g} ± {error:.2g}"


def test_bts_gives_no_error_for_a_bin_that_its_rows_do_not_determine():
    task = simulate(2_000, 5)
    calibrator = BinwiseTemperatureScaling().fit(task.logits, task.labels)
    low = int(np.argmin(calibrator.temperatures_))
    assert calibrator.standard_errors_["temperatures"][low] == 0
    assert f"T = {calibrator.temperatures_[low]:.4g}, not identified by the rows" in text(calibrator)


def test_every_line_fits_a_screen(method, fitted):
    assert max(map(len, fitted(method).summary().splitlines())) <= 80


def test_bts_names_the_lowest_the_highest_and_the_top_bin(task):
    calibrator = BinwiseTemperatureScaling(bins=4).fit(task.logits, task.labels)
    formula = BinwiseFormula(np.array([0.5, 0.75, 0.9]), np.array([1.5, 3.0, 0.5, 2.0]))
    calibrator.model_ = replace(calibrator.model_, formula=formula)
    for words in (
        "lowest: confidence (0.75, 0.9], T = 0.5",
        "highest: confidence (0.5, 0.75], T = 3",
        "top bin: confidence (0.9, 1], T = 2",
    ):
        assert words in text(calibrator)


@pytest.mark.parametrize(
    ("key", "option", "values", "message"),
    [
        ("bts", "bins", [2.5, 1, 10_001, True], "bins must be a whole number from 2 to 10000"),
        ("bts", "top", [0.0, 1.0], "top must be"),
        ("pts", "loss", ["brier", "NLL", None], "loss must be"),
    ],
)
def test_an_option_out_of_range_is_refused_by_fit(key, option, values, message, task):
    for value in values:
        with pytest.raises(InputError, match=message):
            make_calibrator(key, **{option: value}).fit(task.logits, task.labels)


def test_the_network_of_the_paper_has_the_ten_largest_logits_and_two_layers_of_five():
    options = make_calibrator("pts").get_params()
    assert (options["top_k"], options["hidden"], options["loss"]) == (10, (5, 5), "nll")
