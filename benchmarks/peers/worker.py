"""One method of one library, in the library's own environment.

    python worker.py ADAPTER METHOD OUT probe
    python worker.py ADAPTER METHOD OUT speed TASK [once]
    python worker.py ADAPTER METHOD OUT inputs NAME...

Each result is one line of JSON at the end of the file OUT: libraries print what they like to the standard
output. Before a hard input is tried, its name is written, so that a crash leaves a trace.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import io
import json
import logging
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

from adapters import Fit
from hard_inputs import HardInput, hard_inputs
from measurement import measure
from verdicts import Answer, verdict


def append(out: Path, result: dict[str, Any]) -> None:
    """Add a line to the results."""
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of what is measured; optional packages may be missing."""
    found = {"python": platform.python_version()}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def ask(fit: Fit, hard: HardInput) -> Answer:
    """Return what the library makes of an input, whatever that is."""
    said, log = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(said):
            warnings.simplefilter("always")
            fitted = fit(hard.logits, hard.labels)
            probs = fitted.predict_proba(hard.logits if hard.new_logits is None else hard.new_logits)
    except Exception as error:
        return Answer(error=f"{type(error).__name__}: {error}")
    finally:
        logging.getLogger().removeHandler(handler)
    words = [str(warning.message) for warning in caught]
    return Answer(fitted.temperature, probs, said="\n".join([*words, said.getvalue(), log.getvalue()]))


def try_inputs(fit: Fit, names: list[str], out: Path) -> None:
    """Try the inputs of these names, one after the other."""
    known = hard_inputs()
    for name in names:
        append(out, {"input": name, "verdict": "started"})
        answer = ask(fit, known[name])
        words = answer.error or answer.said.strip()
        found = {"verdict": verdict(known[name], answer), "temperature": answer.temperature}
        append(out, {"input": name, "kind": known[name].kind, **found, "words": words[:400]})


def main(arguments: list[str]) -> None:
    """Do one job."""
    adapter_name, method, out, job, *rest = arguments
    adapter = importlib.import_module(f"adapters.{adapter_name}")
    fit = adapter.METHODS[method]
    if job == "probe":
        append(Path(out), {"versions": versions(adapter.PACKAGES)})
    elif job == "speed":
        append(Path(out), measure(fit, Path(rest[0]), once="once" in rest[1:]))
    else:
        try_inputs(fit, rest, Path(out))


if __name__ == "__main__":
    main(sys.argv[1:])
