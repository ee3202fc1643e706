"""Commands in processes of their own, to be killed there.

Most are forks of this process, which has imported everything, so that a command takes a fraction of a second.
The others are new processes, as a shell starts them.
"""

import io
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

LONGEST = 120.0  # seconds for a command that is not killed
_POLL = 0.0005
_STEPS = {"open", "os.rename", "os.remove", "os.link", "os.mkdir", "fcntl.flock", "sqlite3.connect"}


class StillRunningError(Exception):
    """A process did not end."""


class Process:
    """A command that runs in a folder, with its output in files beside the folder."""

    def __init__(self, pid, folder):
        self.pid, self.folder, self.status = pid, folder, None

    def is_alive(self):
        """Say whether the process still runs."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is None

    def wait(self, seconds=LONGEST):
        """Wait for the end and return the exit code, negative for a signal."""
        end = time.monotonic() + seconds
        while self.is_alive():
            if time.monotonic() > end:
                os.killpg(self.pid, signal.SIGKILL)
                raise StillRunningError(f"process {self.pid} did not end within {seconds} s")
            time.sleep(_POLL)
        return os.waitstatus_to_exitcode(self.status)

    def wait_for_group(self, seconds=20.0):
        """Wait until the workers that the command started are gone too."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                os.killpg(self.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.005)
        raise StillRunningError(f"workers of process {self.pid} outlived it")

    def complaint(self):
        """Return what the command wrote to standard error."""
        return _stream(self.folder, "err").read_text(encoding="utf-8", errors="replace")


def _stream(folder, name):
    return folder.with_name(f"{folder.name}.{name}")


def start(words, folder):
    """Start a command as a shell does."""
    with _stream(folder, "out").open("wb") as out, _stream(folder, "err").open("wb") as err:
        command = [sys.executable, "-m", "temperance", *map(str, words)]
        started = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err, process_group=0)
    started.returncode = 0  # we wait for it ourselves
    return Process(started.pid, folder)


def fork(words, folder, prepare=None):
    """Run a command in a fork; `prepare` is called there first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that libraries left, which are idle
        pid = os.fork()
    if pid == 0:
        try:
            _become(words, folder, prepare)
        finally:
            os._exit(99)
    return Process(pid, folder)


def _become(words, folder, prepare):
    """Be a command from here on; this function does not return."""
    os.setpgid(0, 0)
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(_stream(folder, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from temperance.cli import main
    from temperance.study import runner as workers

    # Spawned workers would import everything anew.
    workers.get_context = lambda method, get=workers.get_context: get("fork")
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


def warm_up(words, folder):
    """Run a command in this process, so that forks find all modules imported."""
    from temperance.cli import main
    from temperance.study import runner as workers

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    spawn, silence = workers.get_context, io.StringIO()
    workers.get_context = lambda method: spawn("fork")
    try:
        with chdir(folder), redirect_stdout(silence), redirect_stderr(silence):
            main([str(word) for word in words])
    except SystemExit as left:
        return left.code
    finally:
        workers.get_context = spawn
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
