"""A classifier with one score for two classes, nn.Linear(d, 1), and labels for BCEWithLogitsLoss."""

import numpy as np
import pytest
import torch

from temperance import TemperatureScaling
from temperance.torch import collect_logits

SCORES = torch.linspace(-3, 3, 60, dtype=torch.float64)
LABELS = (torch.arange(60) % 7 < 7 * torch.sigmoid(SCORES / 2)).long()


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
@pytest.mark.parametrize("labels", [LABELS, LABELS.double(), LABELS.float()[:, None]])
def test_heads_and_labels_of_any_usual_shape_are_collected(shape, labels):
    batches = [(SCORES[i : i + 20], labels[i : i + 20]) for i in range(0, 60, 20)]
    if shape == (-1,) and labels.ndim == 2:
        return  # shapes that differ
    z, y = collect_logits(lambda x: x.reshape(shape), batches, progress=False)
    assert torch.equal(z, SCORES)
    assert torch.equal(y, LABELS)


def test_a_module_after_a_head_of_one_column():
    cal = TemperatureScaling().fit(SCORES, LABELS)
    logits, probs = (cal.to_torch(output=output)(SCORES[:, None]) for output in ("logits", "probabilities"))
    np.testing.assert_allclose(logits, np.asarray(cal.transform(SCORES))[:, None], rtol=1e-12)
    np.testing.assert_allclose(probs, cal.predict_proba(SCORES), rtol=1e-12)
