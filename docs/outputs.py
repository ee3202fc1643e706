"""What the Python blocks of a page print: `python docs/outputs.py --write` puts it into the pages.

A block of text that directly follows a block of Python shows what that block prints. Run it after a change of
words or numbers; a test compares pages and output.
"""

import argparse
import contextlib
import io
import re
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<shown>.*?)^```\n)?", re.DOTALL | re.MULTILINE
)


def blocks(text):
    """Return the matches of a page's Python blocks, each with the text that follows it, if there is one."""
    return list(BLOCK.finditer(text))


def printed(text, names=None):
    """Run the blocks of a page in order, and return what each of them prints."""
    names = {"__name__": "page"} if names is None else names
    output = []
    for block in blocks(text):
        with contextlib.redirect_stdout(io.StringIO()) as told:
            exec(compile(block["code"], "page", "exec"), names)
        output.append(told.getvalue())
    return output


def filled(text, output):
    """Return the page with the output in place of what it shows."""
    for block, told in reversed(list(zip(blocks(text), output, strict=True))):
        if block["shown"] is not None:
            start, stop = block.span("shown")
            text = text[:start] + told + text[stop:]
    return text


def pages():
    """Return the pages that show what their blocks print."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {path: path.read_text(encoding="utf-8") for path in found}
    return [path for path, text in texts.items() if any(block["shown"] is not None for block in blocks(text))]


def main():
    """Show or write the pages that differ from what their blocks print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the pages")
    write = parser.parse_args().write
    for path in pages():
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for sample in (ROOT / "docs" / "samples").glob("*.*"):
                Path(sample.name).symlink_to(sample)
            try:
                new = filled(text, printed(text))
            except NameError as error:  # of the reader's own objects, such as a model
                print(f"{path.relative_to(ROOT)}: {error}; its test compares it")
                continue
        if new != text:
            print(path.relative_to(ROOT), "written" if write else "differs")
            if write:
                path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
