"""Each method predicts what its formula says, row by row in arithmetic of 40 digits.

The rows have ties, zeros, impossible classes and logits from tiny to huge.
"""

import numpy as np
import pytest
from formulas_by_definition import FORMULAS
from mpmath import mpf

import temperance
from temperance import CALIBRATORS
from temperance.data import simulate


def rows_of_all_kinds(n_classes, masks):
    rng = np.random.default_rng(1)
    rows = [scale * rng.integers(-3, 4, size=(30, n_classes)) for scale in (1e-3, 0.5, 1.0, 3.0, 20.0)]
    rows += [rng.normal(size=(60, n_classes)) * rng.choice([0.1, 1, 10], size=(60, 1))]
    rows = np.concatenate([np.zeros((1, n_classes)), *rows])
    if masks:
        masked = rng.random(rows.shape) < 0.2
        masked[np.arange(len(rows)), rng.integers(0, n_classes, len(rows))] = False
        rows = np.concatenate([rows, np.where(masked, -np.inf, rows)])
    return rows


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("key", FORMULAS)
def test_a_method_predicts_what_its_formula_says(key, n_classes):
    task = simulate(n_rows=400, n_classes=n_classes, random_state=3)
    options = {"bins": 5} if key == "bts" else {}
    # Without a class bias to remove, none would be mixed in.
    wrong_frequencies = np.linspace(2, -2, n_classes) if key == "bayes-bias" else 0.0
    cal = temperance.make_calibrator(key, **options).fit(task.logits + wrong_frequencies, task.labels)
    logits = rows_of_all_kinds(n_classes, masks=CALIBRATORS[key].supports_masked_classes)
    logits = logits[::5] if key.startswith("bayes") else logits  # five temperatures for each row: slow
    logits = np.concatenate([logits, [[2000.0, *[0.0] * (n_classes - 1)]]])  # a row without entropy
    found = cal.predict_proba(logits)
    parameters = {name: np.asarray(value).tolist() for name, value in cal.parameters().items()}
    for row, probabilities in zip(logits, found, strict=True):
        want = [float(q) for q in FORMULAS[key](parameters, [mpf(float(x)) for x in row])]
        np.testing.assert_allclose(probabilities, want, rtol=2e-10, atol=1e-300, err_msg=str(row))
