"""What fitted methods compute, with NumPy alone: a formula for each, and the model around it.

`temperance.serving` loads a file and predicts with what is here; the estimators in `temperance.calibrators`
fit the numbers.
"""
