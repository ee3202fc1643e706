"""A calibrator file as a fitted model, with NumPy alone: every field is checked before it is used.

`temperance.persistence` builds the estimator around the model, `temperance.serving` a predictor.
"""
