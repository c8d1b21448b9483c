"""An OpenTelemetry collector for tests: HTTP/2, gRPC and protobuf as far as one call needs them.

It shares no code with the exporter. Frames are those of RFC 9113, fields of headers those of
RFC 7541 (written as literals, read not at all), messages those of `opentelemetry-proto`'s
`metrics/v1/metrics.proto`.
"""

from __future__ import annotations

import gzip
import socket
import struct
import threading
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4

Field = Union[int, bytes]


def fields(message: bytes) -> Iterator[Tuple[int, Field]]:
    """Number and value of each field; those of 64 bits as bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
            continue
        length = {1: 8, 5: 4}.get(kind)
        if length is None:
            length = varint()
        yield number, message[at : at + length]
        at += length


def nested(message: bytes, *path: int) -> List[Any]:
    """The values at a path of field numbers."""
    found: List[Any] = [message]
    for number in path:
        found = [value for one in found for key, value in fields(one) if key == number]
    return found


def attributes(pairs: List[bytes]) -> Dict[str, Union[str, int]]:
    """KeyValue: 1 key, 2 value, of which 1 is a text and 3 a number."""
    found: Dict[str, Union[str, int]] = {}
    for pair in pairs:
        (key,), texts = nested(pair, 1), nested(pair, 2, 1)
        found[key.decode()] = texts[0].decode() if texts else nested(pair, 2, 3)[0]
    return found


class Export:
    """An ExportMetricsServiceRequest."""

    def __init__(self, message: bytes) -> None:
        self.resource = attributes(nested(message, 1, 1, 1))
        self._metrics = {
            nested(metric, 1)[0].decode(): metric for metric in nested(message, 1, 2, 2)
        }

    def names(self) -> List[str]:
        return sorted(self._metrics)

    def total(self, name: str, **having: str) -> float:
        """Sum of a counter (Metric.sum is 7; a point's value 4 as a double, 6 as an integer)."""
        total = 0.0
        for point in nested(self._metrics[name], 7, 1):
            of = attributes(nested(point, 7))
            if any(of.get(key) != value for key, value in having.items()):
                continue
            for raw, kind in ((4, "<d"), (6, "<q")):
                total += sum(struct.unpack(kind, value)[0] for value in nested(point, raw))
        return total

    def waits(self) -> int:
        """Times that a wait was recorded (Metric.histogram is 9, a point's count 4)."""
        points = nested(self._metrics["meetpoint.wait"], 9, 1, 4)
        return sum(struct.unpack("<Q", value)[0] for value in points)


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


class Collector:
    """Listens on loopback until closed; `silent`: it accepts connections and answers nothing."""

    def __init__(self, silent: bool = False) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.exports: List[Export] = []
        self.headers: List[bytes] = []
        self._silent = silent
        self._connections: List[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        for connection in self._connections:
            connection.close()

    def __enter__(self) -> "Collector":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            if not self._silent:
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as reader:
            assert reader.read(len(PREFACE)) == PREFACE

            def send(kind: int, flags: int, stream: int, body: bytes) -> None:
                head = struct.pack(">I", len(body))[1:] + bytes([kind, flags])
                connection.sendall(head + struct.pack(">I", stream) + body)

            def frame() -> Optional[Tuple[int, int, int, bytes]]:
                head = reader.read(9)
                if len(head) < 9:
                    return None
                length = int.from_bytes(head[:3], "big")
                return head[3], head[4], int.from_bytes(head[5:], "big"), reader.read(length)

            send(SETTINGS, 0, 0, b"")
            bodies: Dict[int, bytes] = {}
            try:
                while (read := frame()) is not None:
                    kind, flags, stream, body = read
                    if kind == SETTINGS and not flags & ACK:
                        send(SETTINGS, ACK, 0, b"")
                    elif kind == PING and not flags & ACK:
                        send(PING, ACK, 0, body)
                    elif kind == HEADERS:
                        self.headers.append(body)
                    elif kind == DATA:
                        bodies[stream] = bodies.get(stream, b"") + body
                        if body:
                            send(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(body)))
                        if flags & END_STREAM:
                            self._answer(send, stream, bodies.pop(stream))
            except OSError:
                # It was closed.
                return

    def _answer(self, send: Any, stream: int, body: bytes) -> None:
        message = body[5:]
        self.exports.append(Export(gzip.decompress(message) if body[0] else message))
        head = _literal(b":status", b"200") + _literal(b"content-type", b"application/grpc")
        send(HEADERS, END_HEADERS, stream, head)
        send(DATA, 0, stream, b"\0" * 5)
        send(HEADERS, END_HEADERS | END_STREAM, stream, _literal(b"grpc-status", b"0"))
