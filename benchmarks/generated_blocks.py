"""Tables in hand-written pages that scripts keep current.

A page marks the place of a table with two comments, and everything between them is replaced:

    <!-- generated: aims -->
    <!-- end -->
"""

from __future__ import annotations

import re
from collections.abc import Mapping

BLOCK = re.compile(r"(<!-- generated: (?P<name>[\w.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_blocks(page: str, tables: Mapping[str, str]) -> str:
    """Return the page with the current table in each of its blocks."""

    def filled(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in tables:
            known = ", ".join(sorted(tables))
            raise KeyError(f"a generated block must name a table; found {name!r}. Tables: {known}.")
        return f"{match[1]}\n{tables[name].strip()}\n\n{match[3]}"

    return BLOCK.sub(filled, page)
