"""The report: a comparison, or the checks of a calibrator, as one HTML page.

`Comparison.save_report` and the command line write it. A page has sections (`page.py`). Each computes a
display and draws its chart as SVG (`svg.py`) above the numbers.
"""
