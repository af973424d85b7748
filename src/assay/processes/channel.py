"""Messages over a socket: a length, then msgpack of plain values. Nothing is ever unpickled."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from typing import Any

import msgspec

HEAD = struct.Struct("<I")
LIMIT = 1 << 28
"""Longest message; tensors travel through files, so a longer one is garbage."""


class Closed(Exception):
    """The other end is gone."""


class Channel:
    """Both ends of a conversation. Messages are dicts of plain values."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self._buffer = bytearray()
        self._sending = threading.Lock()

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, **message: Any) -> None:
        """Sends one message, whole, from any thread. Raises Closed if nobody listens."""
        body = msgspec.msgpack.encode(message)
        try:
            with self._sending:
                self.sock.sendall(HEAD.pack(len(body)) + body)
        except OSError:  # gone, or ended by another thread
            raise Closed from None

    def receive(self, seconds: float | None = None) -> dict[str, Any] | None:
        """The next message, or None after `seconds` without a whole one. Raises Closed."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            message = self._take()
            if message is not None:
                return message
            left = None if end is None else max(0.0, end - time.monotonic())
            ready, _, _ = select.select([self.sock], [], [], left)
            if not ready:
                return None
            try:
                chunk = self.sock.recv(1 << 20)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise Closed
            self._buffer += chunk

    def _take(self) -> dict[str, Any] | None:
        if len(self._buffer) < HEAD.size:
            return None
        (length,) = HEAD.unpack_from(self._buffer)
        if length > LIMIT:
            raise Closed
        if len(self._buffer) < HEAD.size + length:
            return None
        body = bytes(self._buffer[HEAD.size : HEAD.size + length])
        del self._buffer[: HEAD.size + length]
        try:
            message = msgspec.msgpack.decode(body)
        except msgspec.DecodeError:
            raise Closed from None
        if not isinstance(message, dict):
            raise Closed
        return message

    def close(self) -> None:
        self.sock.close()
