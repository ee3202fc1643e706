"""Fitted calibrators of every method, each fitted once."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from compared import CLASS_KEEPING, STEEP, class_biases

from temperance import make_calibrator
from temperance.data import simulate

OPTIONS = {key: {} for key in CLASS_KEEPING} | {
    "ets, brier": {"loss": "brier"},
    "bayes, class bias": {"class_bias": True},
    "bayes, biases mixed in": {"class_bias": True},
    "mono, steep": {},
}
CHANGES = {"bayes, biases mixed in": class_biases, "mono, steep": {"map_slopes": np.array(STEEP)}}


@pytest.fixture(params=OPTIONS, scope="session")
def name(request):
    """Run the test once for each method, and for each option that changes its formula."""
    return request.param


@pytest.fixture(scope="session")
def calibrator_of():
    """Return the calibrator of a name and a number of classes, always the same one: not to be changed."""
    cache = {}

    def of(name, n_classes=10):
        if (name, n_classes) not in cache:
            task = simulate(n_rows=1000 if n_classes == 10 else 200, n_classes=n_classes, random_state=1)
            cal = make_calibrator(name.split(",")[0], **OPTIONS[name])
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*did not converge")
                cache[name, n_classes] = cal.fit(task.logits, task.labels)
            changes = CHANGES.get(name, {})
            changes = changes(n_classes) if callable(changes) else changes
            formula = replace(cal.model_.formula, **changes)
            cal.model_ = replace(cal.model_, formula=formula)
        return cache[name, n_classes]

    return of
