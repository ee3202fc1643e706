"""scikit-learn's own temperature scaling, an independent implementation, finds the same temperature."""

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from temperance import CalibratedClassifier

HAS_TEMPERATURE = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)


@pytest.mark.skipif(not HAS_TEMPERATURE, reason='method="temperature" came with scikit-learn 1.8')
@pytest.mark.parametrize("classes", [2, 10])
def test_both_libraries_find_the_same_temperature(classes):
    X, y = load_digits(n_class=classes, return_X_y=True)
    X = X / 16 + np.random.default_rng(0).normal(scale=0.5, size=X.shape)
    train, fit, new = (slice(start, start + len(y) // 3) for start in (0, len(y) // 3, 2 * (len(y) // 3)))
    classifier = LogisticRegression(C=100, max_iter=2000).fit(X[train], y[train])
    theirs = CalibratedClassifierCV(FrozenEstimator(classifier), method="temperature").fit(X[fit], y[fit])
    ours = CalibratedClassifier(classifier, "ts", cv="prefit").fit(X[fit], y[fit])
    (fitted,) = theirs.calibrated_classifiers_
    assert abs(np.log(ours.calibrator_.temperature_)) > 0.05, "a temperature of 1 would prove little"
    scale = 2 if classes == 2 else 1  # one score s becomes the logits -s and s there, 0 and s here
    expected = scale * ours.calibrator_.temperature_
    assert 1 / fitted.calibrators[0].beta_ == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X[new]), theirs.predict_proba(X[new]), atol=1e-5)
