"""Cases for the fuzz tests: damaged files for every reader, and rows of any kind for every method.

A case is a name and a function without arguments. It works, or raises InputError: any other error, and a
warning that is no sentence of ours, is a find. `make fuzz` runs many, from a random seed that it prints.
"""

import argparse
import json
import re
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pandas

import temperance
from temperance import CALIBRATORS, InputError, make_calibrator
from temperance.data import open_rows, simulate
from temperance.population import read_population, weak_population, write_population

METHODS = [key for key in CALIBRATORS if not key.endswith("sgd") and key != "pts-plain"]
SLOW_METHODS = ("pts-ece", "bayes-bias", "ets-brier")
OPTIONS = {"bts": {"bins": 5}}
NUMBERS = [
    b"1e308",
    b"-1",
    b"0",
    b"null",
    b"[]",
    b"{}",
    b'"x"',
    b"1e-320",
    b"9" * 30,
    b"NaN",
    b"true",
    b"1e999",
]
MEMORY = 6 << 30  # bytes of address space
PATIENCE = 5.0  # seconds for one case


def damaged(content, rng):
    """Return a file cut short, with bytes changed, moved or added, or with 8 false bytes."""
    data, kind = bytearray(content), rng.integers(5)
    place = int(rng.integers(len(data)))
    if kind == 0:
        return bytes(data[:place])
    if kind == 1:
        for _ in range(rng.integers(1, 6)):
            data[rng.integers(len(data))] = rng.integers(256)
    elif kind == 2:
        end = place + int(rng.integers(1, 200))
        data[place:end] = data[end : end + (end - place)]
    elif kind == 3:
        data[place:place] = rng.bytes(int(rng.integers(1, 9)))
    else:
        data[place : place + 8] = int(rng.integers(2**63)).to_bytes(8, "little")
    return bytes(data)


def with_another_number(content, rng):
    """Return JSON with one number replaced by another value."""
    spans = [match.span() for match in re.finditer(rb"-?\d[\d.e+-]*", content)]
    start, end = spans[rng.integers(len(spans))]
    return content[:start] + NUMBERS[rng.integers(len(NUMBERS))] + content[end:]


class DamagedFiles:
    """Valid files of every kind in a folder, and damaged copies of them."""

    def __init__(self, folder):
        self.folder, self.files = folder, {}
        rng = np.random.default_rng(0)
        self.logits, labels = rng.standard_normal((40, 3)), rng.integers(0, 3, 40)
        self._save_tables(labels)
        write_population(weak_population(), folder / "prior.json")
        self._keep("prior", "prior.json", read_population)
        self.task = simulate(n_rows=60, n_classes=3)
        for key in METHODS:
            path = folder / f"{key}.json"
            _fitted(key, self.task.logits, self.task.labels).save(path)
            self._keep(key, path.name, self._use)

    def _save_tables(self, labels):
        logits, folder = self.logits.astype(np.float32), self.folder
        np.savez(folder / "a.npz", logits=logits, labels=labels)
        np.savez_compressed(folder / "b.npz", logits=logits, labels=labels)
        frame = pandas.DataFrame({f"logit_{k}": logits[:, k] for k in range(3)} | {"label": labels})
        frame.to_csv(folder / "a.csv", index=False)
        frame.to_csv(folder / "a.csv.gz", index=False)
        frame.to_parquet(folder / "a.parquet")
        frame.to_feather(folder / "a.feather")
        frame.to_excel(folder / "a.xlsx", index=False)
        rows = [{"logits": row, "label": y} for row, y in zip(logits.tolist(), labels.tolist(), strict=True)]
        (folder / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
        with h5py.File(folder / "a.h5", "w") as file:
            file["logits"], file["labels"] = logits, labels
        for path in sorted(folder.glob("[ab].*")):
            self._keep(path.name, path.name, _read)

    def _keep(self, name, file, use):
        self.files[name] = (file, (self.folder / file).read_bytes(), use)

    def _use(self, path):
        calibrator = temperance.load(path)
        check_probabilities(calibrator.predict_proba(self.task.logits[:20]))
        calibrator.summary()
        calibrator.save(path, overwrite=True)

    def case(self, rng):
        """Return a name and what reads a damaged copy."""
        name = list(self.files)[rng.integers(len(self.files))]
        file, content, use = self.files[name]
        change = with_another_number if file.endswith(".json") and rng.random() < 0.6 else damaged
        path = self.folder / f"damaged-{file}"
        path.write_bytes(change(content, rng))
        return name, lambda: use(path)


def _read(path):
    rows = open_rows(path, kind="logits")
    np.testing.assert_array_equal(np.concatenate(list(rows.blocks(7))), rows.array())


def _fitted(key, logits, labels, weights=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of fits: messages for users
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
    calibrator = _fitted(key, logits, labels, weights)
    probs = calibrator.predict_proba(logits)
    check_probabilities(probs, logits if calibrator.model_.keeps_class else None)
    path = folder / "generated.json"
    calibrator.save(path, overwrite=True)
    np.testing.assert_array_equal(temperance.load(path).predict_proba(logits), probs)


def outcome(case):
    """Return "works", "refused", or the find."""
    began = time.perf_counter()
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
    return found if time.perf_counter() - began < PATIENCE else f"slow: {found}"


def main():
    """Run many cases, and print how they ended."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    rng, finds = np.random.default_rng(given.seed), {}
    print(f"seed {given.seed}", flush=True)  # noqa: T201
    with tempfile.TemporaryDirectory() as folder:
        files = DamagedFiles(Path(folder))
        for what, count, make in (
            ("damaged files", given.files, files.case),
            ("generated rows", given.cases, lambda rng: generated(rng, Path(folder))),
        ):
            ended = Counter()
            for _ in range(count):
                name, case = make(rng)
                found = outcome(case)
                ended[found if found in ("works", "refused") else "finds"] += 1
                if found not in ("works", "refused"):
                    finds.setdefault(f"{name.partition(' ')[0]}: {found}", name)
            print(f"{count} {what}: {dict(ended)}", flush=True)  # noqa: T201
    for found, name in finds.items():
        print(f"{found}  [{name}]")  # noqa: T201
    sys.exit(bool(finds))


if __name__ == "__main__":
    main()
