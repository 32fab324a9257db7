"""Where work is done: in threads of this process, or on workers of a `dask.distributed` cluster.

Work itself waits for other processes: a judge for each submission, and one that makes its page. The
fork servers that they come from are this process's own, started when they are first needed.
"""

import atexit
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

from grading.runner import forkserver
from grading.runner.forkserver import ForkServer
from grading.runner.job import Job, Verdict

SPARE_SECONDS = 60  # that a judge may take beyond the submission's own time
CONNECT_SECONDS = 20  # after which a dask scheduler is given up

_servers: dict[str, ForkServer] = {}
_starting = threading.Lock()


def fork_server(module: str = "") -> ForkServer:
    """This process's fork server for notebooks, or for calls of a module's functions; running."""
    with _starting:
        if module not in _servers:
            _servers[module] = ForkServer(module)
            atexit.register(_servers[module].close)
        server = _servers[module]
    server.start()
    return server


def run(job: Job) -> Verdict:
    """Run a job.

    Raises:
        ForkServerError: if there is no verdict, for a reason that is not the submission's.
    """
    seconds = job.limits.wall_seconds + SPARE_SECONDS
    return forkserver.ask(fork_server().path, job, seconds)


def call(module: str, function: str, argument: dict, seconds: float) -> dict:
    """Call a function of a module in a process of its own (:func:`forkserver.call`)."""
    return forkserver.call(fork_server(module).path, function, argument, seconds)


@contextlib.contextmanager
def executor(kind: str, jobs: int, scheduler: str | None = None) -> Iterator[Executor]:
    """Where functions run that call :func:`run` and :func:`call`.

    Args:
        kind: ``local`` or ``dask``.
        jobs: how many at a time, locally.
        scheduler: the address of a dask scheduler.

    Raises:
        ValueError: if the kind is unknown, or dask is asked for without a scheduler or the package.
    """
    if kind == "local":
        pool = ThreadPoolExecutor(jobs)
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    elif kind == "dask":
        if not scheduler:
            raise ValueError(
                "--engine dask needs --scheduler ADDRESS, for instance tcp://host:8786"
            )
        try:
            from distributed import Client
        except ImportError:
            raise ValueError(
                "--engine dask needs the package distributed: pip install '.[cluster]'"
            ) from None
        with Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False) as client:
            yield client.get_executor(pure=False)
    else:
        raise ValueError(f"engine {kind!r}: there are local and dask")
