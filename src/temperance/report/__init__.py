"""The report: a comparison as one HTML page. Display objects -> figures -> sections -> page."""

from temperance.report.page import render_report, write_report
from temperance.report.sections import Source

__all__ = ["Source", "render_report", "write_report"]
