"""Print the oldest versions of the core dependencies that pyproject.toml allows, as pip takes them."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
for requirement in project["dependencies"]:
    name, version = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()
    print(f"{name}=={version}.*")  # noqa: T201
