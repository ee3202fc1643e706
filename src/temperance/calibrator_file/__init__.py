"""The calibrator file: its fields, reading it as a model or an estimator, and writing it.

`temperance.load` and `Calibrator.save` are the interface. `temperance.serving` reads a file with NumPy alone,
so nothing is imported here.
"""
