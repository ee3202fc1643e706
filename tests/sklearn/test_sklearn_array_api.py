"""Tensors where scikit-learn dispatches by the type of arrays, which its own classifier takes as well."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

CODE = """
import warnings
import numpy as np, sklearn, torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from temperance import CalibratedClassifier

for n_classes in (2, 3):
    X, y = make_classification(400, 8, n_informative=5, n_classes=n_classes, random_state=0)
    rows, labels = torch.from_numpy(X), torch.from_numpy(y)
    weights = np.linspace(1, 2, 400)
    for estimator in (LinearDiscriminantAnalysis(), GaussianNB()):
        for options in ({"ensemble": True}, {"ensemble": False}, {"cv": "prefit"}):
            prefit = "cv" in options
            with sklearn.config_context(array_api_dispatch=True):
                if not prefit:
                    CalibratedClassifierCV(estimator, cv=5, method="temperature", **options).fit(rows, labels)
                made = []
                for given in ((X, y, weights), (rows, labels, torch.from_numpy(weights))):
                    inner = estimator.fit(*given[:2]) if prefit else estimator
                    if not prefit and isinstance(estimator, LinearDiscriminantAnalysis):
                        given = given[:2]  # it takes no weights
                    model = CalibratedClassifier(inner, "bayes-bias", **options).fit(*given)
                    uses = "predict_proba", "predict_log_proba", "decision_function", "predict"
                    made.append([getattr(model, use)(given[0]) for use in uses])
                for one, other in zip(*made):
                    assert isinstance(one, np.ndarray) and isinstance(other, torch.Tensor), (one, other)
                    np.testing.assert_allclose(one, other.numpy(), rtol=1e-6, atol=1e-9)
            names = np.array(["no", "yes", "perhaps"])[y]
            if not prefit:
                assert isinstance(model.fit(X, y).predict_proba(X), np.ndarray)
                with sklearn.config_context(array_api_dispatch=True):
                    assert set(model.fit(X, names).predict(X)) <= set(names)
print("done")
"""


def test_tensors_give_tensors_with_the_same_numbers():
    """scikit-learn needs the variable before SciPy is imported."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
