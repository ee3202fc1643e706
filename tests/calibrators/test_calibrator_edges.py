"""Limits of options and of files, what a summary says of bins, and what a fit records of weighted rows."""

import json

import numpy as np
import pytest

from temperance import BinwiseTemperatureScaling, InputError, TemperatureScaling, load, make_calibrator
from temperance.calibrators.external_methods import fit
from temperance.calibrators.recording import confidence_and_entropy


def changed(cal, path, **parameters):
    """Save a calibrator, and change some of its parameters in the file."""
    cal.save(path, overwrite=True)
    content = json.loads(path.read_text())
    content["parameters"] |= parameters
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("bins", [2.5, 1, 10_001, True])
def test_bins_are_a_whole_number_from_2_to_10000(bins, task):
    with pytest.raises(InputError, match="bins must be a whole number from 2 to 10000"):
        BinwiseTemperatureScaling(bins=bins).fit(task.logits, task.labels)


@pytest.mark.parametrize("top", [0.0, 1.0])
def test_the_top_edge_lies_between_0_and_1(top, task):
    with pytest.raises(InputError, match="top must be"):
        BinwiseTemperatureScaling(top=top).fit(task.logits, task.labels)


def test_edges_may_be_equal_but_not_fall(task, tmp_path):
    cal = BinwiseTemperatureScaling(bins=4).fit(task.logits, task.labels)
    equal = load(changed(cal, tmp_path / "equal.json", edges=[0.5, 0.5, 0.9]))
    assert equal.edges_.tolist() == [0.5, 0.5, 0.9]
    for edges in ([0.5, 0.4, 0.9], [-0.1, 0.5, 0.9], [0.5, 0.6, 1.1]):
        with pytest.raises(InputError, match="edges must be between 0 and 1 and must not decrease"):
            load(changed(cal, tmp_path / "wrong.json", edges=edges))
    assert load(changed(cal, tmp_path / "all.json", edges=[0.0, 0.5, 1.0])).edges_[-1] == 1


def test_the_summary_of_bts_names_the_lowest_the_highest_and_the_top_bin(task, tmp_path):
    cal = BinwiseTemperatureScaling(bins=4).fit(task.logits, task.labels)
    file = changed(cal, tmp_path / "cal.json", edges=[0.5, 0.75, 0.9], temperatures=[1.5, 3.0, 0.5, 2.0])
    lines = [line.rpartition(" ±")[0] or line for line in load(file).summary().splitlines()]
    assert "lowest: confidence (0.75, 0.9], T = 0.5" in "\n".join(lines)
    assert "highest: confidence (0.5, 0.75], T = 3" in "\n".join(lines)
    assert "top bin: confidence (0.9, 1], T = 2" in "\n".join(lines)


@pytest.mark.parametrize("loss", ["brier", "NLL", None])
def test_the_loss_of_pts_is_nll_or_ece(loss, task):
    with pytest.raises(InputError, match="loss must be"):
        make_calibrator("pts", loss=loss).fit(task.logits, task.labels)


def test_a_network_whose_weights_are_out_of_range_is_refused(task, tmp_path):
    cal = make_calibrator("pts").fit(task.logits, task.labels)
    biases = [1e140] * len(cal.parameters()["layer_1_biases"])
    with pytest.raises(InputError, match=r"weights and biases must be within .*; found 1e\+140"):
        load(changed(cal, tmp_path / "cal.json", layer_1_biases=biases))


def test_all_of_the_variance_may_be_averaged_over_but_not_more_and_not_none(task, tmp_path):
    cal = make_calibrator("bayes").fit(task.logits[:50], task.labels[:50])
    load(changed(cal, tmp_path / "cal.json", averaged_variance=1.0))
    for variance in (0.0, 1.01):
        with pytest.raises(InputError, match="averaged_variance"):
            load(changed(cal, tmp_path / "cal.json", averaged_variance=variance))


@pytest.mark.parametrize("method", [5, None, ["ts"], "tss"])
def test_a_method_that_is_not_one_is_refused(method, task, tmp_path):
    TemperatureScaling().fit(task.logits, task.labels).save(tmp_path / "cal.json")
    content = json.loads((tmp_path / "cal.json").read_text()) | {"method": method}
    (tmp_path / "cal.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="method"):
        load(tmp_path / "cal.json")


def test_weights_count_in_the_classes_but_not_in_the_digest(task):
    weights = np.linspace(0.1, 3, len(task.labels))
    plain = TemperatureScaling().fit(task.logits, task.labels)
    weighted = TemperatureScaling().fit(task.logits, task.labels, weights)
    assert weighted.data_hash_ == plain.data_hash_
    sums = [weights[task.labels == k].sum() for k in range(4)]
    np.testing.assert_allclose(weighted.class_counts_, sums, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_confidence_and_entropy_of_certain_and_of_equal_probabilities(dtype):
    probs = np.array([[1.0, 0.0, 0.0], [0.25, 0.5, 0.25], [1 / 3, 1 / 3, 1 / 3]], dtype)
    confidence, entropy = confidence_and_entropy(probs)
    np.testing.assert_allclose(confidence, [1, 0.5, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(entropy, [0, 1.5 * np.log(2), np.log(3)], rtol=1e-6, atol=1e-30)
    assert confidence_and_entropy(np.array([[np.nextafter(1, 2), 0.0]]))[0][0] == 1


def test_the_baseline_of_a_class_bias_counts_the_classes_that_it_predicts():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 3))
    labels = (logits + np.array([0.0, 0.0, 2.0]) + rng.gumbel(size=(300, 3))).argmax(axis=1)
    cal = make_calibrator("bayes", class_bias=True).fit(logits, labels)
    predicted = np.bincount(cal.predict_proba(logits).argmax(axis=1), minlength=3)
    assert cal.baseline_.predicted_counts.tolist() == predicted.tolist()
    assert predicted.tolist() != np.bincount(logits.argmax(axis=1), minlength=3).tolist()


def test_the_same_rows_16_times_make_the_standard_errors_of_mono_smaller(task):
    once = make_calibrator("mono").fit(task.logits, task.labels)
    often = make_calibrator("mono").fit(np.tile(task.logits, (16, 1)), np.tile(task.labels, 16))
    ratio = often.standard_errors_["map_slopes"] / once.standard_errors_["map_slopes"]
    assert (ratio < 0.95).all()


def test_weights_go_only_to_a_calibrator_whose_fit_takes_them(task):
    class Plain:
        def fit(self, logits, labels):
            self.rows = len(labels)

    assert fit(Plain(), task.logits, task.labels, np.ones(300)).rows == 300
    weighted = fit(TemperatureScaling(), task.logits, task.labels, np.linspace(0.1, 3, 300))
    assert weighted.temperature_ != fit(TemperatureScaling(), task.logits, task.labels).temperature_


def test_a_fit_keeps_the_median_of_its_temperatures_and_the_ends_of_the_middle_nine_tenths(task):
    calibrator = make_calibrator("hts").fit(task.logits, task.labels)
    temperatures = calibrator.temperature(task.logits)
    expected = np.quantile(temperatures, [0.05, 0.5, 0.95], method="inverted_cdf")
    np.testing.assert_allclose(calibrator.temperature_quantiles_, expected, rtol=1e-3)
    assert (np.diff(np.quantile(temperatures, [0.5, 0.55])) > 5e-3).all()  # other levels would be noticed


def test_the_uniform_part_of_bayes_has_the_documented_weight(task):
    weights = np.linspace(0.5, 2, 300)
    calibrator = make_calibrator("bayes").fit(task.logits, task.labels, weights)
    assert calibrator.uniform_weight_ == pytest.approx(0.02 / (weights.sum() + 0.02), rel=1e-12)


def test_the_network_of_the_paper_has_the_ten_largest_logits_and_two_layers_of_five():
    options = make_calibrator("pts").get_params()
    assert (options["top_k"], options["hidden"], options["loss"]) == (10, (5, 5), "nll")
