"""Put a built site beside those of other versions: `python docs/versions.py PAGES SITE REF`.

PAGES is a checkout of the branch that is served, SITE the built pages, REF the name of a branch (`dev`) or
of a tag `vX.Y.Z` (`X.Y`, and `stable` if no later version is there).
"""

import json
import re
import shutil
import sys
from pathlib import Path

TO_STABLE = (
    '<!doctype html><meta http-equiv="refresh" content="0; url={}/index.html"><title>temperance</title>\n'
)


def folder_of(ref):
    """Return the folder of a branch or a tag.

    >>> folder_of("v0.3.1"), folder_of("main")
    ('0.3', 'dev')
    """
    tag = re.fullmatch(r"v(\d+\.\d+)\.\d+", ref)
    return tag[1] if tag else "dev"


def releases(pages):
    """Return the folders of releases, the latest first."""
    names = [path.name for path in pages.iterdir() if re.fullmatch(r"\d+\.\d+", path.name)]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def replace_folder(site, target):
    """Copy the site in place of what was there."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(site, target)


def main(pages, site, ref):
    """Copy the site, and write the list of versions and the start page."""
    pages, site = Path(pages), Path(site)
    name = folder_of(ref)
    replace_folder(site, pages / name)
    released = releases(pages)
    if released and released[0] == name:
        replace_folder(site, pages / "stable")
    first = "stable" if released else "dev"
    (pages / "versions.json").write_text(json.dumps(["stable"] * bool(released) + ["dev", *released]))
    (pages / "index.html").write_text(TO_STABLE.format(first))
    (pages / ".nojekyll").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
