"""`bayes` on logits so large that no temperature is high enough: a search from the prior would take long."""

import numpy as np
import pytest

from temperance import make_calibrator
from temperance.calibrators import bayes_design


@pytest.fixture
def starts(monkeypatch):
    """Note from where the reference temperature is searched."""
    found, search = [], bayes_design.maximise_evidence

    def noted(objective, blocks, start, *rest):
        found.append(float(start[0]))
        return search(objective, blocks, start, *rest)

    monkeypatch.setattr(bayes_design, "maximise_evidence", noted)
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("scale", "searches"), [(1.0, 2), (1e18, 1)])
def test_the_prior_is_left_out_where_no_temperature_is_high_enough(scale, searches, starts, task):
    calibrator = make_calibrator("bayes").fit(task.logits * scale, task.labels)
    assert len(starts) == searches
    assert np.isfinite(calibrator.predict_proba(task.logits * scale)).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_labels_by_chance_are_still_judged_by_the_prior(starts, task):
    wrong = (task.logits.argmax(axis=1) + 1) % 4
    make_calibrator("bayes").fit(task.logits, wrong)
    assert len(starts) == 2
