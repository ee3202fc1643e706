"""The report: a comparison, or the checks of a calibrator, as one HTML page.

`Comparison.save_report` and `temperance compare --report` write it. A page has sections (`sections.py`); a
section computes a display, and draws its chart as SVG (`svg.py`) with the numbers below.
"""
