"""Calibrators of positions take any number of columns, as tensors, as modules and as programs."""

import numpy as np
import pytest
import torch
from compared import ANY_COLUMNS

from temperance import make_calibrator
from temperance.data import simulate
from temperance.torch.module import save_program


@pytest.mark.parametrize("key", ANY_COLUMNS)
def test_modules_and_programs_agree_with_numpy(key, tmp_path):
    task = simulate(n_rows=300, n_classes=4, random_state=0)
    cal = make_calibrator(key).fit(task.logits, task.labels, positions=True)
    module = cal.to_torch(output="probabilities")
    save_program(cal, tmp_path / "cal.pt2")
    program = torch.export.load(tmp_path / "cal.pt2").module()
    for n_options in (2, 3, 4, 6):
        z = 3 * np.random.default_rng(n_options).normal(size=(30, n_options))
        z[::5, 0] = -np.inf
        z[1] *= 1e4  # beyond the lowest entropy
        wanted = cal.predict_proba(z)
        np.testing.assert_allclose(module(torch.from_numpy(z)), wanted, atol=1e-12)
        np.testing.assert_allclose(program(torch.from_numpy(z).float()), wanted, atol=1e-5)
        np.testing.assert_allclose(cal.predict_proba(torch.from_numpy(z)[None])[0], wanted, atol=1e-12)
