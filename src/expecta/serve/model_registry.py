"""Keep the models of a service by name, and read a file anew when it was replaced."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from expecta.common.atomic_files import replace_file
from expecta.common.errors import DomainError, ExpectaError
from expecta.common.file_input import read_bytes
from expecta.common.text import suggestion
from expecta.serve.compute_lanes import ComputeLane, MicroBatches
from expecta.serve.problems import ProblemError
from expecta.serve.serve_options import ServeOptions
from expecta.serve.served_model import FileStamp, ServedModel
from expecta.serve.service_metrics import ServiceMetrics

log = logging.getLogger("expecta.serve")


@dataclass
class ModelEntry:
    """A name, the model that answers for it now, and what became of its file."""

    served: ServedModel
    path: Path | None
    stamp: FileStamp | None
    batches: MicroBatches = field(init=False)
    is_warm: bool = False
    problem: str | None = None  # why the newest file is not in use


class ModelRegistry:
    """The models of a service.

    Parameters
    ----------
    models
        Names, and for each a file or a model that has learned.
    options, metrics
        Of the service.
    """

    def __init__(
        self, models: Mapping[str, Any], options: ServeOptions, metrics: ServiceMetrics
    ) -> None:
        if not models:
            raise DomainError("there is no model to serve; give a file")
        self.options, self.metrics = options, metrics
        self.predictions = ComputeLane(options.max_requests, options.timeout, options.threads)
        self.questions = ComputeLane(options.max_questions, options.timeout, options.threads)
        self.streams = ComputeLane(options.max_streams, options.timeout, options.threads)
        self.reading = ComputeLane(options.max_streams, options.timeout, options.threads)
        self._loading = ComputeLane(len(models) + 1, 3600.0, options.threads)
        self.entries = {name: self._first(name, given) for name, given in models.items()}
        self._tasks: list[asyncio.Task[None]] = []

    def _first(self, name: str, given: Any) -> ModelEntry:
        if not isinstance(given, str | Path):
            served = ServedModel(name, given, "1", rows=self.options.rows)
            return self._entry(served, None, None)
        path, kept = Path(given), kept_file(name, self.options)
        try:
            stamp = FileStamp.of(path)
            return self._entry(read_model(name, path, self.options), path, stamp)
        except (ExpectaError, OSError) as error:
            if kept is None or not kept.exists():
                raise
            served = ServedModel.load(name, kept, rows=self.options.rows)
            entry = self._entry(served, path, None)
            self._keep(name, entry, str(error))
            return entry

    def _entry(self, served: ServedModel, path: Path | None, stamp: FileStamp | None) -> ModelEntry:
        entry = ModelEntry(served, path, stamp)
        entry.batches = MicroBatches(served.predict, self.predictions)
        return entry

    def get(self, name: str) -> ModelEntry:
        """Return a model's entry; a problem where there is none of that name."""
        entry = self.entries.get(name)
        if entry is None:
            raise ProblemError(
                404, f"there is no model {name!r:.80}; {suggestion(name, self.entries)}"
            )
        return entry

    @property
    def is_ready(self) -> bool:
        """Whether every model has answered once."""
        return all(entry.is_warm for entry in self.entries.values())

    # -- files that are replaced ------------------------------------------------------

    async def start(self) -> None:
        """Warm the models, and watch their files, in the background."""
        if self.options.warm_first:
            await self._warm()
        else:
            self._tasks.append(asyncio.create_task(self._warm()))
        if self.options.reload_seconds > 0:
            self._tasks.append(asyncio.create_task(self._watch()))

    async def stop(self) -> None:
        """Stop both."""
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for lane in (self.predictions, self.questions, self.streams, self.reading, self._loading):
            lane.close()

    async def _warm(self) -> None:
        for name, entry in list(self.entries.items()):
            try:
                await self._loading.run(entry.served.warm)
            except Exception as error:
                entry.problem = str(error)
                log.error("cannot answer", extra={"model": name, "problem": str(error)})
            else:
                entry.is_warm = True
                log.info("ready", extra={"model": name, "version": entry.served.version})
        self._set_apart()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.options.reload_seconds)
            for name in self.entries:
                await self.reload(name)

    async def reload(self, name: str) -> None:
        """Read a model's file anew if it was replaced; the old one answers until that is done.

        Where the new file cannot be read the old model goes on, and health and card say so.
        """
        entry = self.entries[name]
        if entry.path is None or not entry.is_warm:
            return
        try:
            stamp = FileStamp.of(entry.path)
        except OSError as error:
            self._keep(name, entry, f"the file cannot be read: {error.strerror}")
            return
        if stamp == entry.stamp:
            return
        entry.stamp = stamp  # this file is tried once
        try:
            served = await self._loading.run(partial(self._load, name, entry.path))
        except (ProblemError, ExpectaError, OSError) as error:
            self._keep(name, entry, str(error))
            return
        fresh = self._entry(served, entry.path, stamp)
        fresh.is_warm = True
        self.entries[name] = fresh
        self.metrics.reloads.labels(name, "loaded").inc()
        log.info("reloaded", extra={"model": name, "version": served.version})
        del entry, served
        self._set_apart()

    def _load(self, name: str, path: Path) -> ServedModel:
        served = read_model(name, path, self.options)
        served.warm()
        return served

    def _set_apart(self) -> None:
        """Leave what is there to stay out of garbage collections: they take long to look at it."""
        if self.options.own_process:
            gc.unfreeze()  # models that were replaced since
            gc.collect()
            gc.freeze()

    def _keep(self, name: str, entry: ModelEntry, problem: str) -> None:
        if entry.problem != problem:
            entry.problem = problem
            self.metrics.reloads.labels(name, "failed").inc()
            log.error("reload failed; the old model stays", extra={"model": name})


# -- files for processes that start later -------------------------------------------------


def read_model(name: str, path: Path, options: ServeOptions) -> ServedModel:
    """Read a model's file, and keep a copy of what could be read where options name a folder."""
    data = read_bytes(path)
    served = ServedModel.from_bytes(name, path, data, rows=options.rows)
    kept = kept_file(name, options)
    if kept is not None:
        try:
            replace_file(str(kept), data)
        except OSError as error:  # a full disk, say: answers do not depend on it
            log.warning("no copy is kept", extra={"model": name, "problem": str(error)})
    return served


def kept_file(name: str, options: ServeOptions) -> Path | None:
    """Return where the copy is; a model's name may be anything, that of its copy is not."""
    if options.kept_folder is None:
        return None
    return Path(options.kept_folder) / hashlib.sha256(name.encode()).hexdigest()[:32]
