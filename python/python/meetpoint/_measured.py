"""The measurements of a loader: reports, explanations, energy, traces and metrics."""

from __future__ import annotations

import os
from collections import deque
from typing import (
    TYPE_CHECKING,
    Any,
    Deque,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Union,
)

from . import _native, _world
from ._arguments import path as given_path
from ._arguments import path_or_none, whole
from ._damage import DamagedSample
from ._state import Position

if TYPE_CHECKING:
    from ._observe import Energy, Explanation, MetricsExporter, MetricsServer, Replay

# Epochs that a report retains in full; earlier ones lose the records of single batches.
_WHOLE_EPOCHS = 4
# Damaged samples that are retained.
ERRORS_KEPT = 10_000


class Measured:
    """The part of a loader that reports measurements."""

    _native: _native.Loader
    _world: _world.World
    _strategy: str
    _batches: int
    _position: Position
    _fixed: Dict[str, Any]

    def __init__(self) -> None:
        self._resumed: List[Dict[str, Any]] = []
        # By epoch that another number of ranks began: its batches that are repeated or omitted.
        self._divided: Dict[int, List[Dict[str, Any]]] = {}
        self._epochs: List[Dict[str, Any]] = []
        self._damaged: Deque[DamagedSample] = deque(maxlen=ERRORS_KEPT)
        self._replayed_step: Optional[float] = None
        self._exporter: Optional["MetricsExporter"] = None

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError

    def _end_iterator(self) -> None:
        raise NotImplementedError

    def report(self) -> Dict[str, Any]:
        """The measurements: ``epochs``, ``uneven`` and ``notices``.

        They are as in the reports of `meetpoint run`; each notice, and each of the ``events`` of an
        epoch, also has a ``message``, a sentence. ``uneven`` names the batches that the ranks
        together deliver more than once or not at all, each with its epoch and the reason.

        For each of the ``devices`` of an epoch, ``limits`` contains the target, the achieved value
        and the validity (``is_valid``, ``causes``) of every speed limit of an emulated device, and
        ``core_use`` what disturbed its core, in nanoseconds; docs/emulation.md defines both.

        The current epoch is not included, except in ``uneven`` if another number of ranks began it.
        """
        # Imported here to keep the import of this package fast.
        import json

        for text in self._native.take_finished():
            self._epochs.append(json.loads(text))
        for epoch in self._epochs[:-_WHOLE_EPOCHS]:
            epoch.pop("records", None)
        return {
            "strategy": self._strategy,
            "batches": self._batches,
            "samples": self._native.samples,
            "epochs": list(self._epochs),
            "uneven": self._uneven(),
            "notices": [
                *map(json.loads, self._native.notices),
                *self._resumed,
                *self._notices_of_rank(),
            ],
        }

    def _uneven(self) -> List[Dict[str, Any]]:
        """Batches that are repeated or omitted, in the epochs of the report."""
        from ._uneven import Sizes, entries

        fixed = self._fixed
        samples = self._native.samples_per_epoch
        sizes = Sizes(samples, fixed["batch_size"], fixed["drop_last"], fixed["world_size"])
        repeated, omitted = sizes.repeated(), sizes.omitted()
        begun = (int(epoch["epoch"]) for epoch in self._epochs if epoch["samples"])
        numbers = sorted({*begun, *self._divided})
        return [
            row
            for epoch in numbers
            for row in self._divided.get(epoch, entries(epoch, repeated, omitted))
        ]

    def _note_division(self, position: Position) -> None:
        """Records the division at a position at which an iteration begins, or that was loaded."""
        if position.division is not None:
            self._divided[position.epoch] = position.uneven()
        elif not position.ranges:
            self._divided.pop(position.epoch, None)

    def _notices_of_rank(self) -> List[Dict[str, Any]]:
        if self._world.source != _world.ENVIRONMENT or self._world.size == 1:
            return []
        message = f"this is {self._world}; rank=0 and world_size=1 load everything in this process"
        return [{"kind": "world", "message": message}]

    def explain(self) -> Optional["Explanation"]:
        """Whether loading delayed the last epoch, which stage did, and the possible gain.

        Describes the last completed epoch of at least two batches; ``None`` if there is none. The
        gain is measured after :meth:`replay`, and otherwise estimated from the steps.
        """
        from ._observe import explanation

        text = self._native.explain(self._replayed_step)
        return None if text is None else explanation(text)

    def replay(self, batches: int = 4, steps: int = 64) -> "Replay":
        """Repeats the first batches of the next epoch, with no preparation in the meantime.

        Train on it for a while: the duration of its steps is that of training that never waits,
        which :meth:`explain` then uses. The next iteration begins the same epoch again; the state
        of the loader is unchanged.

        :param batches: number of different batches.
        :param steps: number of batches to yield.
        """
        from ._observe import Replay

        batches, steps = whole("batches", batches, least=1), whole("steps", steps, least=1)
        before, damaged = self._position, list(self._damaged)
        kept: List[Any] = []
        for batch in self:
            kept.append(batch)
            if len(kept) == batches:
                break
        self._end_iterator()
        self._position = before
        self._damaged = deque(damaged, maxlen=ERRORS_KEPT)

        def done(seconds: float) -> None:
            self._replayed_step = seconds

        return Replay(kept, steps, done)

    def energy(self, power: Union[str, "os.PathLike[str]", None] = None) -> "Energy":
        """The energy of a ``with`` block, each figure with its source.

        ::

            with loader.energy() as energy:
                for images, labels in loader:
                    ...
            print(energy)

        :param power: the power model: the name of a preset (``server``, ``desktop``, …) or a TOML
            file; ``None`` for the default preset.
        """
        from ._observe import Energy

        return Energy(lambda: self._native, path_or_none("power", power))

    def trace(self, path: Union[str, "os.PathLike[str]"]) -> int:
        """Writes the last four epochs that ended as a trace for ui.perfetto.dev or Chrome.

        The trace shows who prepared which batch when, what the consumer waited for, how many
        batches were ready, and what went wrong. The current epoch is not included. Of more than
        200,000 batches, the file has the last ones and the number of those omitted.

        :returns: the number of events written.
        :raises SettingError: ``path`` is not a path.
        """
        events, _ = self._native.write_trace(given_path("path", path))
        return events

    def metrics(self) -> str:
        """Counters and histograms as Prometheus scrapes them (OpenMetrics text)."""
        return self._native.metrics()

    def serve_metrics(self, port: int = 0, host: str = "127.0.0.1") -> "MetricsServer":
        """Answers ``GET /metrics`` until the returned server is closed.

        :param port: 0 for any free port; the server has its number.
        :param host: address to listen on; by default only this machine can connect.
        :raises SettingError: it cannot listen on this address.
        """
        from ._observe import MetricsServer

        return MetricsServer(self.metrics, host, port)

    def export_metrics(
        self,
        endpoint: Optional[str] = None,
        *,
        interval: Optional[float] = None,
        attributes: Optional[Mapping[str, str]] = None,
    ) -> "MetricsExporter":
        """Sends metrics to an OpenTelemetry collector (OTLP over gRPC), from now until closed.

        The metrics are those of :meth:`metrics`, counted from now on. Arguments default to the
        ``OTEL_*`` environment variables. A collector that is unreachable or does not answer causes
        a :class:`MetricsWarning` and delays nothing.

        :param endpoint: URL of the collector; by default ``"http://127.0.0.1:4317"``.
        :param interval: seconds between two exports; by default 10.
        :param attributes: further attributes of the resource, which has ``service.name``,
            ``meetpoint.rank`` and ``meetpoint.world_size``.
        :raises SettingError: the endpoint is unusable, the protocol is not gRPC, or an exporter is
            already active.
        """
        from ._observe import MetricsExporter

        rank, ranks = self._world.place
        self._exporter = MetricsExporter(
            self._native, endpoint, interval, attributes or {}, rank, ranks
        )
        return self._exporter
