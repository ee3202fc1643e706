"""Commands in processes of their own, to be killed there.

Most are forks of this process, which has imported everything, so that a command takes a fraction of a second.
The others are new processes, as a shell starts them.
"""

import io
import multiprocessing
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

LONGEST = 120.0  # seconds for a command that is not killed
_STEPS = {"open", "os.rename", "os.remove", "os.link", "os.mkdir", "fcntl.flock", "sqlite3.connect"}


class Process:
    """A fork that runs in a folder, with its output in files beside the folder."""

    def __init__(self, run, folder):
        self.folder = folder
        self._process = multiprocessing.get_context("fork").Process(target=run)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that libraries left, now idle
            self._process.start()
        self.pid, self.is_alive = self._process.pid, self._process.is_alive

    def wait(self, seconds=LONGEST):
        """Wait for the end and return the exit code, negative for a signal."""
        self._process.join(seconds)
        if self.is_alive():
            os.killpg(self.pid, signal.SIGKILL)
            raise TimeoutError(f"process {self.pid} did not end within {seconds} s")
        return self._process.exitcode

    def wait_for_group(self, seconds=20.0):
        """Wait until the workers that the command started are gone too."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                os.killpg(self.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.005)
        raise TimeoutError(f"workers of process {self.pid} outlived it")

    def complaint(self):
        """Return what the command wrote to standard error."""
        return _stream(self.folder, "err").read_text(encoding="utf-8", errors="replace")


def _stream(folder, name):
    return folder.with_name(f"{folder.name}.{name}")


def fork(words, folder, prepare=None, *, real=False):
    """Run a command in a fork, where `prepare` is called first, or in a new process as a shell starts it."""
    return Process(lambda: _become(words, folder, prepare, real), folder)


def _become(words, folder, prepare, real):
    """Be a command from here on; this function does not return."""
    os.setpgid(0, 0)
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(_stream(folder, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    if real:
        os.execv(sys.executable, [sys.executable, "-m", "temperance", *map(str, words)])
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from temperance.cli import main

    _forked_workers().start()
    code = 99
    try:
        if prepare is not None:
            prepare()
        main([str(word) for word in words])
    except SystemExit as left:
        code = left.code
    except BaseException:
        traceback.print_exc()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _forked_workers():
    """Return a patch that makes the workers of a study forks: spawned ones would import everything anew."""
    context = multiprocessing.get_context("fork")
    return mock.patch("temperance.study.runner.get_context", return_value=context)


def warm_up(words, folder):
    """Run a command in this process, so that forks find all modules imported."""
    from temperance.cli import main

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    silence = io.StringIO()
    try:
        with _forked_workers(), chdir(folder), redirect_stdout(silence), redirect_stderr(silence):
            main([str(word) for word in words])
    except SystemExit as left:
        return left.code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class AtStep:
    """What to do before a step of this process in a folder: opening, renaming, removing, locking, writing.

    An instance is a `prepare` of `fork`. With `tears`, a call of `os.write` writes half before the action, as
    the system may when it ends a process.
    """

    def __init__(self, folder, number, act, *, tears=False):
        self.folder, self.number, self.act, self.tears = str(folder), number, act, tears
        self.seen, self.pid = 0, None

    def __call__(self):
        """Watch this process, not those that it starts."""
        from temperance.study import store

        self.pid = os.getpid()
        os.write = self._counted(os.write, tears=self.tears)
        store._insert = self._counted(store._insert)
        sys.addaudithook(self._hook)

    def _hook(self, event, arguments):
        if event in _STEPS and (event == "fcntl.flock" or self._is_here(arguments[0])):
            self._step()

    def _is_here(self, path):
        if isinstance(path, int):
            return False
        full = Path.cwd() / os.fsdecode(path)
        return str(full).startswith(f"{self.folder}{os.sep}")

    def _step(self):
        self.seen += 1
        if self.seen - 1 == self.number and os.getpid() == self.pid:
            self.act()

    def _counted(self, function, tears=False):
        def call(first, second, *rest):
            if tears and self.seen == self.number:
                function(first, second[: len(second) // 2])
            self._step()
            return function(first, second, *rest)

        return call


def count_steps(words, folder):
    """Run a command in a fork and return its exit code, the number of its steps, and its seconds."""
    read, write = os.pipe()
    steps = AtStep(folder, -1, None)

    def prepare():
        steps()
        leave = os._exit
        os._exit = lambda code: (os.write(write, b"%d" % steps.seen), leave(code))

    began = time.monotonic()
    process = fork(words, folder, prepare)
    os.close(write)
    code = process.wait()
    seconds = time.monotonic() - began
    with os.fdopen(read, "rb") as pipe:
        return code, int(pipe.read() or 0), seconds


def limit_file_size(size):
    """Return a `prepare` after which no file can grow beyond a size, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def nobody():
    """Give up the rights of root in this process: root may write everywhere."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
