"""For users of scikit-learn: `CalibratedClassifier` gives any classifier calibrated probabilities."""

from temperance.sklearn.classifier import CalibratedClassifier

__all__ = ["CalibratedClassifier"]
