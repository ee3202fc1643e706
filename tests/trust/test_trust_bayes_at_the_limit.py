"""`bayes` on logits so large that no temperature is high enough: a search from the prior would take long."""

import warnings

import numpy as np
import pytest

from temperance import make_calibrator, metrics
from temperance.calibrators import bayes


@pytest.fixture
def starts(monkeypatch):
    """Note from where the reference temperature is searched."""
    found, search = [], bayes.maximise_evidence

    def noted(objective, blocks, start, *rest):
        if len(start) == 1:  # one temperature, not all coefficients
            found.append(float(start[0]))
        return search(objective, blocks, start, *rest)

    monkeypatch.setattr(bayes, "maximise_evidence", noted)
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("scale", "searches"), [(1.0, 2), (1e8, 1), (1e18, 0)])
def test_the_prior_is_left_out_where_no_temperature_is_high_enough(scale, searches, starts, task):
    calibrator = make_calibrator("bayes").fit(task.logits * scale, task.labels)
    assert len(starts) == searches
    assert np.isfinite(calibrator.predict_proba(task.logits * scale)).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_labels_by_chance_are_still_judged_by_the_prior(starts, task):
    wrong = (task.logits.argmax(axis=1) + 1) % 4
    make_calibrator("bayes").fit(task.logits, wrong)
    assert len(starts) == 2


@pytest.mark.parametrize("key", ["bayes", "bayes-bias"])
@pytest.mark.parametrize("scale", [1e12, 1e15, 1e18, 1e30, 1e60])
def test_hopeless_logits_keep_the_prior_within_few_passes_and_the_remedy_works(key, scale, task):
    with pytest.warns(UserWarning, match=r"at its upper limit, 1e\+06: scale the logits down") as told:
        calibrator = make_calibrator(key).fit(task.logits * scale, task.labels)
    assert len(told) == 1  # not one of convergence as well
    assert calibrator.solution_.converged
    assert calibrator.solution_.passes < 30
    assert calibrator.reference_ == pytest.approx(1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_calibrator(key).fit(task.logits, task.labels)


# With 1e8 the search ends in a kink of the loss, where a row's T reaches the limit: the remedy is the same.
@pytest.mark.parametrize("scale", [1e6, 1e8])
def test_logits_that_only_a_map_can_repair_are_fitted_with_the_warning_of_ts(scale, task):
    with pytest.warns(UserWarning, match="at its upper limit") as told:
        calibrator = make_calibrator("bayes").fit(task.logits * scale, task.labels)
    assert len(told) == 1
    assert calibrator.solution_.converged
    probabilities = calibrator.predict_proba(task.logits * scale)
    assert metrics.nll(probabilities, task.labels) < np.log(4)
