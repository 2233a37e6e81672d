"""What tells the files of a report from those of others."""

from __future__ import annotations

#: The first line of the summary.
HEADING = "# The paper, reproduced"
#: By file name, what stands near the beginning of each.
MARKS = {"report.html": '<meta name="generator" content="projfree reproduction">', "summary.md": HEADING}
