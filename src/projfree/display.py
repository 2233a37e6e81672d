"""Small tables for notebooks."""

from __future__ import annotations

from html import escape


def html_table(title: str, rows: dict[str, str]) -> str:
    """A titled table of names and values, with everything escaped."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows.items()
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{cells}</tbody></table>"
