"""The report: everything in it is computed from the table of results, and nothing is measured here."""

from reproduction.report.build import build

__all__ = ["build"]
