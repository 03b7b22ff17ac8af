"""Messages between a pipeline and one of its worker processes.

Both sides hold one end of a socket (SOCK_SEQPACKET: messages stay whole) and send slots of shared memory
through it. A message is

    header | table of buffers | pickle          the last two in the slot if they are large

and the slot holds the buffers at multiples of 64 bytes. A new slot's descriptor comes with the first message
that uses it; both sides close it once they have mapped the slot.
"""

from __future__ import annotations

import array
import contextlib
import os
import pickle
import socket
import struct
from enum import IntEnum
from typing import Any, NamedTuple

from headrace import _core
from headrace.errors import Error
from headrace.pipeline._pickled_message import PickledMessage

#: Kind, flags, slot, number, buffers, position of table and pickle in the slot (-1: in the message), their
#: bytes, service times.
_HEADER = struct.Struct("<BBIQIqqqqq")
#: offset in the slot, bytes, 1 if read-only
_ENTRY = struct.Struct("<qq?")
#: Table and pickle up to this go with the message.
_MAX_INLINE = 32 << 10
_MAX_MESSAGE = _HEADER.size + _MAX_INLINE
_ALIGNMENT = 64

_HAS_SLOT = 1
_IS_LENT = 2


class Kind(IntEnum):
    task = 1
    result = 2
    error = 3


class Service(NamedTuple):
    """When a body ran (CLOCK_MONOTONIC) and what CPU time it took, in ns."""

    began_ns: int = 0
    ended_ns: int = 0
    cpu_ns: int = -1


class Message:
    """A received message, still packed: kind, number and service can be read at once."""

    __slots__ = ("_head", "_lease", "_table", "kind", "number", "service")

    def __init__(
        self, kind: Kind, number: int, service: Service, head: memoryview, table: int, lease: Any
    ) -> None:
        self.kind = kind
        self.number = number
        self.service = service
        self._head = head
        self._table = table
        self._lease = lease

    def unpack(self) -> Any:
        """The object. Its large arrays are views of the slot, which is free once all are gone.

        Call it before the next message is received.
        """
        pickled = self._head[self._table * _ENTRY.size :]
        if self._lease is None:
            return pickle.loads(pickled)
        views = []
        for offset, size, readonly in _ENTRY.iter_unpack(self._head[: self._table * _ENTRY.size]):
            view = self._lease[offset : offset + size]
            views.append(view.toreadonly() if readonly else view)
        return pickle.loads(pickled, buffers=views)


class Channel:
    """One side. Used by one thread at a time. most_bytes: of shared memory that this side fills."""

    def __init__(self, connection: socket.socket, most_bytes: int) -> None:
        self._socket = connection
        self._sender = _core.SlotSender(most_bytes)
        self._receiver = _core.SlotReceiver()
        self._room = bytearray(_MAX_MESSAGE)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def send(self, kind: Kind, number: int, parcel: PickledMessage, service: Service | None = None) -> None:
        """OSError (BrokenPipeError, ConnectionResetError) if the other side is gone."""
        service = service or Service()
        buffers = parcel.buffers
        head_bytes = len(buffers) * _ENTRY.size + parcel.stream_bytes
        if not buffers and head_bytes <= _MAX_INLINE:
            header = _HEADER.pack(kind, 0, 0, number, 0, 0, head_bytes, *service)
            self._socket.sendmsg([header, *_joined(parcel.stream)])
            return
        entries = []
        end = 0
        for buffer in buffers:
            entries.append((end, buffer.nbytes, buffer.readonly))
            end = -(-(end + buffer.nbytes) // _ALIGNMENT) * _ALIGNMENT
        head = [b"".join(_ENTRY.pack(*entry) for entry in entries), *parcel.stream]
        inline = head_bytes <= _MAX_INLINE
        writer = self._sender.claim(end if inline else end + head_bytes)
        for (offset, _, _), buffer in zip(entries, buffers, strict=True):
            writer.write(offset, buffer)
        if not inline:
            at = end
            for piece in head:
                writer.write(at, piece)
                at += len(piece)
        flags = _HAS_SLOT | (_IS_LENT if writer.is_lent else 0)
        header = _HEADER.pack(
            kind, flags, writer.number, number, len(buffers), -1 if inline else end, head_bytes, *service
        )
        descriptors = []
        if writer.descriptor >= 0:
            descriptors = [
                (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", writer.descriptor)),
            ]
        self._socket.sendmsg([header, *_joined(head)] if inline else [header], descriptors)
        writer.sent()

    def receive(self) -> Message | None:
        """The next message; None if the other side is gone."""
        room = memoryview(self._room)
        try:
            size, extra, _, _ = self._socket.recvmsg_into([room], socket.CMSG_SPACE(4))
        except ConnectionResetError:
            return None
        if size == 0:
            return None
        kind, flags, slot, number, table, head_at, head_bytes, *times = _HEADER.unpack_from(room)
        with _descriptor_in(extra) as fd:
            lease = self._lease(slot, flags, fd) if flags & _HAS_SLOT else None
        if lease is not None and head_at >= 0:
            head = lease[head_at : head_at + head_bytes]
        else:
            head = room[_HEADER.size : size]
        if len(head) != head_bytes:
            raise Error("a worker process sent a message of another length than it says")
        return Message(Kind(kind), number, Service(*times), head, table, lease)

    def _lease(self, slot: int, flags: int, fd: int) -> memoryview:
        if flags & _IS_LENT:
            # The sender has used all its memory, so keep a copy and free the slot.
            return memoryview(bytearray(_core.SlotReceiver.borrow(fd)))
        if fd >= 0:
            self._receiver.add(slot, fd)
        return memoryview(self._receiver.lease(slot))


def _joined(pieces: list[Any]) -> list[Any]:
    """A message is written from a limited number of pieces (IOV_MAX)."""
    return pieces if len(pieces) < 64 else [b"".join(pieces)]


@contextlib.contextmanager
def _descriptor_in(extra: list[tuple[int, int, bytes]]) -> Any:
    """The descriptor that came with a message, -1 if none did; closed at the end."""
    found = array.array("i")
    for level, kind, data in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    try:
        yield found[0] if found else -1
    finally:
        for fd in found:
            os.close(fd)
