"""Build the documentation site in build/docs, without a network, and check its internal links.

    python docs/build.py

Sphinx writes generated pages beside its sources, so it works on a copy: the repository stays as it is.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from check_links import broken_links
from generated_pages import write_command_reference, write_metric_reference, write_name_reference

ROOT = Path(__file__).resolve().parents[1]
COPY, OUT = ROOT / "build" / "docs-source", ROOT / "build" / "docs"
IN_THE_REPOSITORY = r"https://(github|raw\.githubusercontent)\.com/OWNER/temperance/(blob/)?main/"
ROOT_FILES = ("CONTRIBUTING.md", "CHANGELOG.md", "README.md", "LICENSE", "CITATION.cff", "SECURITY.md")


def copy_sources():
    """Copy the pages, and what they link to, as they lie in the repository."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT / "docs", COPY / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "examples", COPY / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ROOT_FILES:
        shutil.copy(ROOT / name, COPY / name)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (COPY / "README.md").write_text(re.sub(IN_THE_REPOSITORY, "", readme), encoding="utf-8")
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (COPY / "CONTRIBUTING.md").write_text(
        guide.replace("](ARCHITECTURE.md", "](https://github.com/OWNER/temperance/blob/main/ARCHITECTURE.md"),
        encoding="utf-8",
    )


def run_sphinx():
    """Build the pages; every warning is an error, after all of them are shown."""
    shutil.rmtree(OUT, ignore_errors=True)
    arguments = ["-b", "html", "-W", "--keep-going", "-q", "-j", "auto", "-d", str(COPY / "doctrees")]
    style = COPY / "docs" / "tutorials" / "temperance.mplstyle"
    threads = {"TEMPERANCE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    environment = os.environ | threads | {"MPLBACKEND": "agg", "MATPLOTLIBRC": str(style)}
    command = [sys.executable, "-m", "sphinx", *arguments, str(COPY / "docs"), str(OUT)]
    return subprocess.run(command, env=environment, check=False).returncode


def main():
    """Build, check, and say where the site is."""
    copy_sources()
    write_command_reference(COPY / "docs" / "command-line.md")
    write_name_reference(COPY / "docs" / "reference" / "names.md")
    write_metric_reference(COPY / "docs" / "reference" / "metrics.md")
    if code := run_sphinx():
        sys.exit(code)
    if broken := broken_links(OUT):
        sys.exit("Links must lead to a file and a place in it; found:\n" + "\n".join(broken))
    sys.stdout.write(f"{OUT / 'index.html'}\n")


if __name__ == "__main__":
    main()
