"""No command uses a network: every door to one is shut while the whole job runs."""

import socket

import numpy as np
import pytest

DOORS = ("socket.socket.connect", "socket.create_connection", "socket.getaddrinfo", "socket.gethostbyname")


@pytest.fixture
def run(tmp_path, monkeypatch, run_command):
    """Return a function that runs a command in a folder of its own, without a network."""
    for door in DOORS:
        monkeypatch.setattr(door, _refuse)
    monkeypatch.chdir(tmp_path)
    return lambda *words: run_command(*words)[::2]


def _refuse(*arguments, **options):
    raise AssertionError(f"the network was asked for: {arguments}")


@pytest.mark.usefixtures("run")
def test_the_doors_are_shut():
    with socket.socket() as plain:
        for ask in (socket.getaddrinfo, socket.create_connection, plain.connect):
            with pytest.raises(AssertionError, match="the network was asked for"):
                ask(("127.0.0.1", 9))


def test_the_whole_job_is_done_without_a_network(run, tmp_path, task):
    np.savez("rows.npz", logits=task.logits[:150], labels=task.labels[:150])
    np.savez("test.npz", logits=task.logits[150:], labels=task.labels[150:])
    commands = [
        "fit rows.npz -m hts -o cal.json",
        "apply cal.json rows.npz -o probs.npz",
        "evaluate probs.npz --draws 20",
        "compare rows.npz test.npz -m ts,hts --report page.html",
        "export cal.json cal.onnx",
    ]
    for words in commands:
        code, said = run(*words.split())
        assert code == 0, (words, said)
        assert "network" not in said
    code, said = run("check", "cal.json", "rows.npz", "--history", "checks.jsonl")
    assert code in (0, 3), said
    written = {path.name for path in tmp_path.iterdir()}
    assert {"cal.json", "probs.npz", "page.html", "cal.onnx", "checks.jsonl"} <= written


@pytest.mark.slow
def test_the_demo_needs_no_network(run, tmp_path):
    assert run("demo", "--report", "demo.html")[0] == 0
    assert (tmp_path / "demo.html").stat().st_size > 100_000
