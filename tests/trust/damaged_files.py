"""Sound files for every reader of the package, and damaged copies of them."""

import gzip
import re
import shutil
import sys
from pathlib import Path

import h5py
import numpy as np
from fuzz_cases import METHODS, check_probabilities, fitted
from onnx import TensorProto, helper

import temperance
from temperance.data import open_rows, simulate
from temperance.monitoring import check
from temperance.onnx import append_to_onnx
from temperance.population import read_population, weak_population, write_population
from temperance.report.history import render_history
from temperance.study import Results
from temperance.study.results import example_results
from temperance.study.store import FILE_NAME

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "data"))
from onnx_models import linear_classifier
from saved import SAVERS

VALUES = [
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


def damaged(content, rng):
    """Return a file cut short, with bytes changed, moved or added, or with a lie of 8 bytes."""
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
    """Return JSON of which one number is something else."""
    spans = [match.span() for match in re.finditer(rb"-?\d[\d.e+-]*", content)]
    start, end = spans[rng.integers(len(spans))]
    return content[:start] + VALUES[rng.integers(len(VALUES))] + content[end:]


class DamagedFiles:
    """Sound files of every kind in a folder, and damaged copies of them."""

    def __init__(self, folder):
        self.folder, self.files = folder, {}
        self.copies = folder / "damaged"
        self.copies.mkdir()
        self.task = simulate(n_rows=60, n_classes=3)
        self.rows = self.task.logits[:20]
        self.calibrator = fitted("ts", self.task.logits, self.task.labels)
        self._save_tables()
        self._save_calibrators()
        self._save_classifier()
        self._save_history()
        self._save_study()

    def _save_tables(self):
        arrays = {"logits": self.task.logits[:40].astype(np.float32), "labels": self.task.labels[:40]}
        for name, (save, suffix) in SAVERS.items():
            save(self.folder / f"{name}{suffix}", arrays)
            self._keep(name, f"{name}{suffix}", _read)
        np.save(self.folder / "alone.npy", arrays["logits"])
        self._keep("npy", "alone.npy", _read)
        (self.folder / "packed.csv.gz").write_bytes(gzip.compress(self.files["csv"][1]))
        self._keep("csv.gz", "packed.csv.gz", _read)
        with h5py.File(self.folder / "plain.h5", "w") as file:
            file.update(arrays)
        self._keep("hdf5 without filters", "plain.h5", _read)

    def _save_calibrators(self):
        write_population(weak_population(), self.folder / "prior.json")
        self._keep("prior", "prior.json", read_population)
        for key in METHODS:
            path = self.folder / f"{key}.json"
            fitted(key, self.task.logits, self.task.labels).save(path)
            self._keep(key, path.name, self._use_calibrator)

    def _save_classifier(self):
        end = [helper.make_node("Softmax", ["logits"], ["probs"])]
        outputs = [helper.make_tensor_value_info("probs", TensorProto.FLOAT, ["batch", 3])]
        linear_classifier(self.folder / "classifier.onnx", np.eye(3), end=end, outputs=outputs)
        self._keep("onnx", "classifier.onnx", self._append)

    def _save_history(self):
        path = self.folder / "history.jsonl"
        for start in (20, 40):
            part = slice(start, start + 20)
            check(self.calibrator, self.task.logits[part], self.task.labels[part], history=path)
        self._keep("history", path.name, self._check)

    def _save_study(self):
        results = example_results()
        shutil.move(results.folder / FILE_NAME, self.folder / FILE_NAME)
        results.folder.rmdir()
        self._keep("study", FILE_NAME, _read_study)

    def _keep(self, name, file, use):
        self.files[name] = (file, (self.folder / file).read_bytes(), use)

    def _use_calibrator(self, path):
        calibrator = temperance.load(path)
        check_probabilities(calibrator.predict_proba(self.rows))
        calibrator.summary()
        calibrator.save(path, overwrite=True)

    def _append(self, path):
        append_to_onnx(self.calibrator, path, self.copies / "calibrated.onnx", overwrite=True)

    def _check(self, path):
        found = check(self.calibrator, self.rows, self.task.labels[:20], history=path)
        assert "</html>" in render_history(found)

    def case(self, rng):
        """Return a name and what reads a damaged copy."""
        name = list(self.files)[rng.integers(len(self.files))]
        file, content, use = self.files[name]
        is_text = file.endswith((".json", ".jsonl"))
        change = with_another_number if is_text and rng.random() < 0.6 else damaged
        path = self.copies / file
        path.write_bytes(change(content, rng))
        return name, lambda: use(path)


def _read(path):
    rows = open_rows(path, kind="logits", need_labels=path.suffix != ".npy")
    np.testing.assert_array_equal(np.concatenate(list(rows.blocks(7))), rows.array())


def _read_study(path):
    results = Results(path.parent)
    results.times()
    if 200 in results.sizes:
        results.summary("nll", 200)
