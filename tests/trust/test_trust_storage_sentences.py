"""What is said of storage that fails where the atomic write alone cannot say it."""

import errno
import os
import shutil

import pytest
from onnx import checker

from temperance import make_calibrator
from temperance.cli.program import _explain
from temperance.monitoring import check
from temperance.monitoring.history import open_history


@pytest.fixture
def calibrator(task):
    return make_calibrator("ts").fit(task.logits, task.labels)


def test_a_model_whose_folder_vanishes_is_not_called_invalid(calibrator, tmp_path, monkeypatch):
    (folder := tmp_path / "gone").mkdir()

    def vanish(path, full_check):
        shutil.rmtree(folder)
        raise checker.ValidationError("Unable to open proto file")

    monkeypatch.setattr(checker, "check_model", vanish)
    with pytest.raises(FileNotFoundError, match=r"the folder .*gone does not exist"):
        calibrator.to_onnx(folder / "cal.onnx")


def test_a_read_only_disk_is_a_matter_of_usage():
    error = OSError(errno.EROFS, "Read-only file system", "study")
    assert _explain(error) == ("study: read-only file system", 2)


def test_a_full_disk_leaves_the_history_as_it_was(calibrator, task, tmp_path, monkeypatch):
    path = tmp_path / "checks.jsonl"
    check(calibrator, task.logits[:100], task.labels[:100], history=path)
    before, calls = path.read_bytes(), []

    def write(number, line, write=os.write):
        calls.append(line)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(number, line[:50])

    monkeypatch.setattr("temperance.monitoring.history.os.write", write)
    with pytest.raises(OSError, match="No space left") as caught:
        check(calibrator, task.logits[100:], task.labels[100:], history=path)
    assert caught.value.filename == str(path)
    assert (len(calls), path.read_bytes()) == (2, before)
    with open_history(path) as history:
        assert len(history.records) == 1
