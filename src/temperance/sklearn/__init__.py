"""Among scikit-learn's classifiers: `CalibratedClassifier`, which gives any of them calibrated probabilities."""

from temperance.sklearn._classifier import CalibratedClassifier

__all__ = ["CalibratedClassifier"]
