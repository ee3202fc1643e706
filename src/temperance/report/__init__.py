"""The report: a comparison as one HTML page. Display objects -> figures -> sections -> page."""

from temperance.report.page import render_report, write_report
from temperance.report.provenance import Source
from temperance.report.shipping import Shipping

__all__ = ["Shipping", "Source", "render_report", "write_report"]
