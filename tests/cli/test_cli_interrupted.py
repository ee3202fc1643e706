"""A command that is stopped at any moment leaves either the old file or the new one, never half of it."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from running import half_written

OLD = b"the old file"
ROWS, CLASSES = 45_000, 100  # 18 MB: two parts


@pytest.fixture
def large(folder, calibrator, fit):
    """Make a file whose probabilities take a while to write, and calibrators of as many classes."""
    rng = np.random.default_rng(0)
    some = rng.standard_normal((500, CLASSES)).astype(np.float32)
    fit("ts", some, some.argmax(axis=1) // 2 * 2).save("large.json")
    np.save("new.npy", np.tile(some, (ROWS // 500, 1)))
    Path("out.npy").write_bytes(OLD)
    yield ("apply", "large.json", "new.npy", "--input", "logits", "-o", "out.npy", "--force")
    for path in folder.glob("*.npy"):
        path.unlink()


def wait_for_half_written(process, folder):
    """Wait until the command has begun to write."""
    while process.poll() is None:
        if half_written(folder):
            return
        time.sleep(0.001)
    pytest.fail(f"the command ended before it wrote: {process.communicate()}")


@pytest.mark.parametrize(
    ("name", "code", "sentence"),
    [
        ("SIGINT", 130, b"error: interrupted; no file was left half-written\n"),
        ("SIGTERM", 143, b""),
        pytest.param("SIGHUP", 129, b"", marks=pytest.mark.slow),
    ],
)
def test_a_command_that_is_asked_to_stop_leaves_nothing_behind(name, code, sentence, large, folder, start):
    Path("out.csv").write_bytes(OLD)
    np.save("new.npy", np.load("new.npy")[:9000])
    before = {path.name for path in folder.iterdir()}
    process = start(*large[:-2], "out.csv", "--force")  # text takes long to write
    wait_for_half_written(process, folder)
    os.kill(process.pid, getattr(signal, name))
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (code, b"", sentence)
    assert Path("out.csv").read_bytes() == OLD
    assert {path.name for path in folder.iterdir()} == before


def test_a_command_under_nohup_outlives_its_terminal(files, calibrator, start):
    process = start(
        *("apply", "cal.json", "test.npz", "-o", "out.npy"),
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    time.sleep(1)  # it is at work
    os.kill(process.pid, signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert np.load("out.npy").shape == (200, 4)


def test_a_fit_that_is_interrupted_leaves_the_old_calibrator(files, folder, start):
    Path("cal.json").write_bytes(OLD)
    process = start("fit", "val.npz", "-o", "cal.json", "--force")
    loaded = Path(f"/proc/{process.pid}/maps")
    while "numpy" not in loaded.read_text():  # Python itself has started: it is fitting, or on the way there
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    content = Path("cal.json").read_bytes()
    assert content == OLD or json.loads(content)["method"] == "bayes"
    assert b"Traceback" not in err
    assert process.returncode == 130 or content != OLD
    assert not half_written(folder)
