"""The page for users of scikit-learn runs as it is written."""

import re
import types
from pathlib import Path

import pytest

from temperance.data import simulate

PAGE = Path(__file__).parents[2] / "docs" / "scikit-learn.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the pages are not beside the tests")
@pytest.mark.filterwarnings("ignore:All 3 rows are classified correctly:UserWarning")
def test_the_code_of_the_page_runs_and_gives_the_printed_results(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("pandas")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(block, names)
    said = re.search(r"# ([\d.]+ -> [\d.]+)", blocks[0])[1]
    assert capsys.readouterr().out.startswith(f"{said}\n")
    assert len(names["search"].cv_results_["params"]) == 6
    task = simulate(n_rows=2000, n_classes=3, temperature=2.0, random_state=1)
    for power, finding in ((1, ""), (3, "Overconfident by"), (0.5, "Underconfident by")):
        probs = task.probabilities**power
        probs /= probs.sum(axis=1, keepdims=True)
        classifier = types.SimpleNamespace(classes_=["a", "b", "c"], predict_proba=probs.__getitem__)
        report = types.SimpleNamespace(
            estimator_=classifier, X_test=slice(None), y_test=["abc"[y] for y in task.labels]
        )
        assert finding in (names["Miscalibrated"]().check_function(report) or "")
        assert bool(finding) == bool(names["Miscalibrated"]().check_function(report))
    assert list(names["calibrator"].transform(names["logits"]).index) == ["a", "b", "c"]
