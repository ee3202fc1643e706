"""A whole HTML page: style and script are inline, so it opens anywhere and needs no network."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from markupsafe import Markup

from temperance.report.markup import element


def html_document(title: str, *body: Markup, script: str | None = None) -> str:
    """Return the page as text; `script` is the name of its script."""
    code = None if script is None else read_asset(script)
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(code)),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", title),
        element("style", read_asset("page.css")),
    ]
    end = [] if code is None else [element("script", code)]
    page = element("html", element("head", *head), element("body", *body, *end), lang="en")
    return f"<!doctype html>\n{page}"


def read_asset(name: str) -> Markup:
    """Return a style sheet or script of this package."""
    return Markup(resources.files("temperance.report").joinpath(name).read_text(encoding="utf-8"))


def _policy(code: Markup | None) -> str:
    """Allow only the page's own script, so that a browser loads nothing else."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    if code is None:
        return policy
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return f"{policy}; script-src 'sha256-{digest}'"
