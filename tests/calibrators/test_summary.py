"""The summary of a fitted calibrator: sentences that follow from its numbers."""

from dataclasses import replace

import numpy as np
import pytest

from temperance import (
    BinwiseTemperatureScaling,
    EntropyTemperatureScaling,
    LinearTemperatureScaling,
    TemperatureScaling,
    make_calibrator,
)
from temperance.calibrators.hnlts import _entropy_weight_in_words
from temperance.data import simulate
from temperance.formulas.bts import BinwiseFormula
from temperance.formulas.ts import SingleTemperatureFormula


def text(calibrator):
    """Return the summary without its line breaks."""
    return calibrator.summary().replace("\n ", "")


def test_ts_gives_the_direction_and_size_of_the_miscalibration():
    task = simulate(5_000, 5, temperature=1.0, entropy_slope=0.0, class_spread=0.0)
    calibrator = TemperatureScaling().fit(task.logits, task.labels)
    for temperature, words in (
        (3.0, "the classifier is overconfident; its logits are 3 times too large"),
        (1.01, "the classifier is overconfident; its logits are 1.01 times too large"),
        (1.004, "neither over- nor underconfident on average"),
        (0.996, "neither over- nor underconfident on average"),
        (0.99, "the classifier is underconfident; its logits are 1.01 times too small"),
        (0.25, "the classifier is underconfident; its logits are 4 times too small"),
    ):
        calibrator.model_ = replace(calibrator.model_, formula=SingleTemperatureFormula(temperature))
        assert words in text(calibrator)


def test_of_two_classes_a_temperature_does_not_say_overconfident():
    """A rare class whose probabilities are too extreme is predicted too rarely."""
    task = simulate(500, 2)
    calibrator = TemperatureScaling().fit(task.logits, task.labels)
    for temperature, words in (
        (3.0, "predictions are too extreme; the logits are 3 times too large"),
        (1.0, "the logits have the right scale on average"),
        (0.25, "predictions are not extreme enough; the logits are 4 times too small"),
    ):
        calibrator.model_ = replace(calibrator.model_, formula=SingleTemperatureFormula(temperature))
        assert words in text(calibrator)
        assert "confident" not in text(calibrator)


def test_a_fitted_number_cannot_be_changed_by_hand():
    task = simulate(200, 3)
    calibrator = TemperatureScaling().fit(task.logits, task.labels)
    with pytest.raises(AttributeError, match="has no setter"):
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


@pytest.mark.parametrize(
    ("weight", "error", "highest", "words"),
    [
        (1.9, 1.0, 3.0, "no clear"),  # a clear relation has two standard errors
        (2.1, 1.0, 3.0, "unsure predictions"),
        (-2.1, 1.0, 3.0, "sure"),
        (0.0065, 0.0026, 1.04, "a small effect"),
        (0.0065, 0.0026, 1.06, "unsure predictions need"),
    ],
)
def test_the_weight_of_the_entropy_is_told_if_it_is_clear_and_matters(weight, error, highest, words):
    quantiles = np.array([1.0, 1.01, highest])
    assert _entropy_weight_in_words(weight, np.array(error), quantiles).startswith(words)


def test_lts_names_the_most_and_least_overconfident_classes_in_order_with_their_errors():
    task = simulate(5_000, 6, random_state=1)
    calibrator = LinearTemperatureScaling().fit(task.logits, task.labels)
    weights, errors = calibrator.class_weights_, calibrator.standard_errors_["class_weights"]
    lines = calibrator.summary().splitlines()
    for said, order in (("most", np.argsort(-weights)), ("least", np.argsort(weights))):
        at = 1 + next(i for i, line in enumerate(lines) if line.startswith(f"w_L, {said} overconfident"))
        expected = [f"  class {k}: {weights[k]:.4g} ± {errors[k]:.2g}" for k in order[:3]]
        assert lines[at : at + 3] == expected


def test_bts_gives_no_error_for_a_bin_that_its_rows_do_not_determine():
    task = simulate(2_000, 5)
    calibrator = BinwiseTemperatureScaling().fit(task.logits, task.labels)
    low = int(np.argmin(calibrator.temperatures_))
    assert calibrator.standard_errors_["temperatures"][low] == 0
    assert f"T = {calibrator.temperatures_[low]:.4g}, not identified by the rows" in text(calibrator)


def test_the_summary_has_method_rows_solver_and_loss_and_every_line_fits_a_screen(method, fitted):
    lines = fitted(method).summary().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].endswith(f"({method})")
    assert any("4 classes, fitted on 300 rows" in line for line in lines)
    assert any(line.startswith("solver:") for line in lines)
    loss = f" of the calibration rows: {fitted(method).solution_.value:.4f}"
    assert any(line.endswith(loss) for line in lines)


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


def test_the_network_of_the_paper_has_the_ten_largest_logits_and_two_layers_of_five():
    options = make_calibrator("pts").get_params()
    assert (options["top_k"], options["hidden"], options["loss"]) == (10, (5, 5), "nll")
