"""Work units on a Dask cluster: its scheduler distributes them, and repeats those of a lost worker.

The workers need this package, and the task files under the same paths.
"""

from __future__ import annotations

import socket
from collections.abc import Generator, Iterable

from temperance.errors import InputError
from temperance.loaders import import_optional
from temperance.study.protocol import WorkUnit
from temperance.study.scoring import Score, run_work_unit
from temperance.study.workers import limit_threads

_WAIT = 10.0  # seconds to wait for an answer


def check_scheduler(address: str) -> None:
    """Raise unless Dask is installed and a scheduler answers at the address."""
    addressing = import_optional("distributed.comm.addressing", "dask", "a cluster")
    try:
        host, port = addressing.get_address_host_port(address, strict=True)
        socket.create_connection((host, port), timeout=_WAIT).close()
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            "the scheduler must be the address of a Dask scheduler, such as tcp://host:8786; "
            f"found {address!r} ({error})."
        ) from None


def run_on_cluster(units: Iterable[WorkUnit], address: str) -> Generator[list[Score], None, None]:
    """Yield the results of each work unit as it is done, in any order."""
    from distributed import Client, KilledWorker, as_completed

    with Client(address, timeout=_WAIT, set_as_default=False) as client:
        futures = client.map(_run_alone, list(units), pure=False)
        for future in as_completed(futures, loop=client.loop):
            try:
                result = future.result()
            except KilledWorker as error:
                raise ChildProcessError(
                    f"the cluster gave up on work whose workers died each time ({error}). They may need more "
                    "memory. Finished work is kept."
                ) from None
            yield result
            future.release()  # the store has its result now


def _run_alone(unit: WorkUnit) -> list[Score]:
    limit_threads()
    return run_work_unit(unit)
