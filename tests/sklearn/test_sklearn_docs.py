"""The page for users of scikit-learn runs as it is written."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "scikit-learn.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the pages are not beside the tests")
@pytest.mark.filterwarnings("ignore:All 3 rows are classified right:UserWarning")
def test_the_code_of_the_page_runs_and_gives_the_printed_results(capsys):
    pytest.importorskip("pandas")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(block, names)
    said = re.search(r"# ([\d.]+ -> [\d.]+)", blocks[0])[1]
    assert capsys.readouterr().out.startswith(f"{said}\n")
    assert len(names["search"].cv_results_["params"]) == 6
    assert list(names["calibrator"].transform(names["logits"]).index) == ["a", "b", "c"]
