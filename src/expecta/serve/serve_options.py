"""Set how a service runs: its limits, and what it lets out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServeOptions:
    """Limits and permissions of a service, for each of its processes.

    Attributes
    ----------
    token
        What requests must bring as ``Authorization: Bearer``; None lets everyone in. Health,
        the page and the API's description need none.
    rows
        Whether plain averages beside answers come from training rows that a file holds. Without
        it they come from sums over groups of no row or at least five each. Rows themselves are
        never in an answer.
    origins
        Origins of other pages that browsers may ask from (CORS); none by default.
    max_bytes, max_rows
        Of a request. Streams have no limit but one of each line, or batch.
    max_requests
        That are worked on or wait; a further one is answered 429.
    max_questions, max_streams
        The same of questions, which take longer than predictions, and of streams of rows.
    timeout
        Seconds after which a question is answered 503, and a client that sends nothing 408.
    reload_seconds
        How often model files are looked at; 0 for never.
    warm_first
        Whether to take no connection before every model is warm, health included: of several
        processes on a port those that are warm answer.
    threads
        That kernels run on; None for one per core.
    own_process
        Whether the process serves and does nothing else: what is there once models are warm is then
        left out of garbage collections, for whose pauses requests would wait.
    kept_folder
        Where the last readable file of each model is kept, for a process that starts while the
        file itself is damaged; None keeps none.

    Examples
    --------
    >>> ServeOptions(token="secret", max_rows=100).timeout
    30.0
    """

    token: str | None = None
    rows: bool = False
    origins: tuple[str, ...] = ()
    max_bytes: int = 16 << 20
    max_rows: int = 10_000
    max_requests: int = 512
    max_questions: int = 32
    max_streams: int = 16
    timeout: float = 30.0
    reload_seconds: float = 1.0
    warm_first: bool = False
    threads: int | None = None
    own_process: bool = False
    kept_folder: str | None = None
