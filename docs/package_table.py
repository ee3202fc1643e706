"""The package graph as a table: GitHub draws the Mermaid text of a page, the site does not."""

import re

BLOCK = re.compile(r"```mermaid\n(.*?)```\n", re.DOTALL)
HEAD = "| layer | part | imports | loads on use |\n| --- | --- | --- | --- |\n"


def arrows(graph, kind):
    """Return the parts that each part points to with one kind of arrow."""
    found = {}
    for part, other in re.findall(rf"^ +(\w+) {re.escape(kind)} (\w+)$", graph, re.MULTILINE):
        found.setdefault(part, []).append(f"`{other}`")
    return found


def as_table(graph):
    """Return a row for each part of a Mermaid graph, from the highest layer to the lowest."""
    imports, on_use = arrows(graph, "-->"), arrows(graph, "-. on use .->")
    rows = []
    for layer, parts in re.findall(r"subgraph layer(\d+)\[ \]\n(.*?)  end\n", graph, re.DOTALL):
        for part in parts.split():
            links = (", ".join(found.get(part, [])) for found in (imports, on_use))
            rows.append(f"| {layer} | `{part}` | {' | '.join(links)} |\n")
    return HEAD + "".join(rows)


def replace_graph(path):
    """Put the table in the place of the graph of a page."""
    page = path.read_text(encoding="utf-8")
    graph = BLOCK.search(page)
    if graph is None:
        raise ValueError(f"{path.name} must hold a Mermaid graph; found none")
    table = as_table(graph[1])
    path.write_text(page[: graph.start()] + table + page[graph.end() :], encoding="utf-8")
