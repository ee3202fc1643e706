"""Rows of any kind for every method, and how a case ends.

A case is a name and a function without arguments. It works, or raises InputError. Any other error is a find,
and so are a warning that is no sentence of ours and a case that takes long.
"""

import signal
import time
import warnings

import numpy as np

import temperance
from temperance import CALIBRATORS, InputError, make_calibrator

METHODS = [key for key in CALIBRATORS if not key.endswith("sgd") and key != "pts-plain"]
SLOW_METHODS = ("pts-ece", "bayes-bias", "ets-brier")
OPTIONS = {"bts": {"bins": 5}}
PATIENCE = 5.0  # seconds of processor time for one case
LONGEST = 30.0  # after which a case is stopped


def fitted(key, logits, labels, weights=None):
    """Return a calibrator, without the sentences that a fit has for people."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return make_calibrator(key, **OPTIONS.get(key, {})).fit(logits, labels, weights)


def check_probabilities(probs, logits=None):
    """Assert that these are probabilities, whose largest is that of the largest logit."""
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1, dtype=np.float64), 1, atol=5e-3)
    if logits is not None:
        assert (probs[np.arange(len(probs)), logits.argmax(axis=1)] == probs.max(axis=1)).all()


def generated(rng, folder, methods=METHODS, most_classes=1000):
    """Return a name and what fits a method to rows of any type, order, size, weights, ties and masks."""
    key = methods[rng.integers(len(methods))]
    n_rows, K = int(rng.integers(1, 80)), int(np.exp(rng.uniform(np.log(2), np.log(most_classes + 1))))
    scale = 10 ** rng.choice([0, 0, 0, rng.uniform(-6, 3), rng.uniform(-300, 300)])
    logits = rng.standard_normal((n_rows, K)) * scale
    labels = np.where(rng.random(n_rows) < 0.6, logits.argmax(axis=1), rng.integers(0, K, n_rows))
    if rng.random() < 0.2:
        logits = np.round(logits / scale) * scale
    if rng.random() < 0.2:
        masked = (rng.random(logits.shape) < 0.3) & (np.arange(K) != labels[:, None])
        logits[masked] = rng.choice([-np.inf, np.finfo(np.float64).min, -1e30])
    dtype = rng.choice(["f8", "f4", "f2", ">f8"])
    with np.errstate(over="ignore"):
        logits = np.asarray(logits, dtype, order=rng.choice(["C", "F"]))
    weights = rng.choice([0.0, 1e-9, 1.0, 1e9], n_rows) if rng.random() < 0.2 else None
    name = f"{key} {logits.dtype} {logits.shape} scale {scale:.0e} weights {weights is not None}"
    return name, lambda: _fit_and_use(key, logits, labels, weights, folder)


def _fit_and_use(key, logits, labels, weights, folder):
    calibrator = fitted(key, logits, labels, weights)
    probs = calibrator.predict_proba(logits)
    check_probabilities(probs, logits if calibrator.model_.keeps_class else None)
    path = folder / "generated.json"
    calibrator.save(path, overwrite=True)
    np.testing.assert_array_equal(temperance.load(path).predict_proba(logits), probs)


def _stop(number, frame):
    raise TimeoutError(f"stopped after {LONGEST:.0f} s")


def outcome(case):
    """Return "works", "refused", or the find."""
    before = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)
            case()
        found = "works"
    except InputError:
        found = "refused"
    except Exception as error:
        found = f"{type(error).__name__}: {str(error).strip()[:150]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return found if time.process_time() - began < PATIENCE else f"slow: {found}"
