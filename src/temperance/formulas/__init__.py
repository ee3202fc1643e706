"""What fitted methods compute, using only NumPy: one formula per method, and the model that holds it.

`temperance.serving` loads a file and predicts with these formulas; the estimators in `temperance.calibrators`
fit the numbers.
"""
