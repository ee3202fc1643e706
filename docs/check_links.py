"""Find internal links of a built site that lead nowhere. External links are not fetched."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places in it that a link can lead to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Collect what the tag links to and what it is called."""
        given = dict(attributes)
        self.places |= {given[key] for key in ("id", "name") if given.get(key)}
        self.links += [given[key] for key in ("href", "src") if given.get(key)]


def broken_links(folder):
    """Return "page: link" for each link to a missing file, or to a missing place in a page."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in Path(folder).rglob("*.html")}
    return [
        f"{path.relative_to(Path(folder).resolve())}: {link}"
        for path, page in sorted(pages.items())
        for link in page.links
        if not leads_somewhere(path, link, pages)
    ]


def leads_somewhere(path, link, pages):
    """Tell whether a link of a page is external, or leads to a file and a place that exist."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return False
    return not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].places
