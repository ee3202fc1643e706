"""`temperance.serving`: bit-identical to the estimator, with NumPy alone, and immutable."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import temperance
from temperance import CALIBRATORS, InputError, serving
from temperance.data import simulate

METHODS = [key for key, method in CALIBRATORS.items() if not method.options or key == "bayes-bias"]
TASK = simulate(n_rows=300, n_classes=5, random_state=0)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return the file of a method, fitted once."""
    folder, files = tmp_path_factory.mktemp("served"), {}

    def of(key):
        if key not in files:
            files[key] = folder / f"{key}.json"
            temperance.make_calibrator(key).fit(TASK.logits, TASK.labels).save(files[key])
        return files[key]

    return of


@pytest.mark.parametrize("n_rows", [1, 300])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("key", METHODS)
def test_it_is_bit_identical_to_the_estimator(key, dtype, n_rows, stored):
    predictor, calibrator = serving.load(stored(key)), temperance.load(stored(key))
    rows = TASK.logits[:n_rows].astype(dtype)
    for name in ("predict_proba", "transform", "predict"):
        assert getattr(predictor, name)(rows).tobytes() == getattr(calibrator, name)(rows).tobytes()
    if hasattr(calibrator, "temperature_quantiles_"):
        assert predictor.temperature(rows).tobytes() == calibrator.temperature(rows).tobytes()


def test_it_needs_only_numpy(stored):
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('scipy', 'sklearn', 'joblib', 'threadpoolctl', 'numba'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from temperance import serving\n"
        "for path in sys.argv[1:]:\n"
        "    predictor = serving.load(path)\n"
        "    assert abs(predictor.predict_proba([[3.0, 1.0, 0.0, 0.0, -1.0]]).sum() - 1) < 1e-12\n"
        "    predictor.predict_proba(predictor.transform([[1.0] * 5] * 5000))\n"
    )
    files = [str(stored(key)) for key in METHODS]
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, *files], check=True)


def test_it_imports_little_else(stored):
    """Counted, since seconds differ between machines: these take longer to import than to do without."""
    code = (
        "import sys, numpy; before = set(sys.modules)\n"
        "from temperance import serving\n"
        f"serving.load({str(stored('bayes'))!r}).predict_proba([[0.0] * 5])\n"
        "print(*(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = loaded.stdout.split()
    unwanted = ("pathlib", "tempfile", "difflib", "concurrent", "logging", "numpy.polynomial", "urllib")
    unwanted += ("numpy.ma", "temperance.formulas.pts", "temperance.formulas.ets")
    assert not [name for name in modules if name.startswith(unwanted)]
    assert len(modules) < 70, len(modules)


def test_a_prediction_imports_nothing(stored):
    """A process that is forked while another thread imports would wait for that import for ever."""
    code = (
        "import sys, numpy\n"
        "from temperance import serving\n"
        "for path in sys.argv[1:]:\n"
        "    predictor = serving.load(path)\n"
        "    before = set(sys.modules)\n"
        "    for rows in (1, 5, 200_000):\n"
        "        predictor.predict_proba(numpy.zeros((rows, 5)))\n"
        "        predictor.transform(numpy.zeros((rows, 5), numpy.float32).tolist())\n"
        "    assert set(sys.modules) == before, set(sys.modules) - before\n"
    )
    files = [str(stored(key)) for key in METHODS]
    environment = {**os.environ, "TEMPERANCE_THREADS": "2"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, *files], check=True, env=environment)


def test_columns_in_another_order_are_refused(stored, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TASK.logits, columns=list("abcde"))
    calibrator = temperance.TemperatureScaling().fit(frame, TASK.labels)
    calibrator.save(tmp_path / "named.json")
    predictor = serving.load(tmp_path / "named.json")
    assert predictor.class_names == tuple("abcde")
    assert predictor.predict_proba(frame).tobytes() == calibrator.predict_proba(frame).tobytes()
    with pytest.raises(InputError, match="another order"):
        predictor.predict_proba(frame[list("edcba")])
    unnamed = serving.load(stored("ts"))
    assert unnamed.predict_proba(frame).shape == (len(frame), 5)


def test_it_cannot_be_changed_and_says_what_it_is_and_what_it_lacks(stored):
    predictor = serving.load(stored("hts"))
    with pytest.raises(AttributeError):
        predictor.model = None
    assert repr(predictor) == "Predictor(method='hts', n_classes=5)"
    assert predictor.class_names is None
    assert predictor.fitted_on.kind == "logits"
    with pytest.raises(InputError, match="was fitted on 5 classes"):
        predictor.predict_proba(TASK.logits[:, :4])
    with pytest.raises(InputError, match="like probabilities"):
        predictor.predict_proba(np.full((30, 5), 0.2))
    for key in ("ets", "mono"):
        with pytest.raises(InputError, match=f"such as ts; found {key}"):
            serving.load(stored(key)).temperature(TASK.logits)


def test_threads_may_share_it(stored):
    predictor = serving.load(stored("bayes"))
    expected = predictor.predict_proba(TASK.logits).tobytes()
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: predictor.predict_proba(TASK.logits).tobytes(), range(64)))
    assert found == {expected}
