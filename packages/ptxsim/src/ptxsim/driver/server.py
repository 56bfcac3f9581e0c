"""Answers the stand-in's requests (driver/native/wire.c) one at a time while a program runs."""

from __future__ import annotations

import os
import selectors
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ptxsim.driver.arena import BASE
from ptxsim.driver.chips import attribute_table, properties
from ptxsim.driver.device import OUT_OF_MEMORY, CudaError, Device
from ptxsim.driver.telling import launch_text, short
from ptxsim.report.names import brief

_HEAD, _ANSWER = struct.Struct("<II"), struct.Struct("<iI")
_LAUNCH = struct.Struct("<II3I3I3IIQ")


class Server:
    """Calls complain(line) with each line for the user and told(record) after each launch. The context
    patience(what) is active during work that may take long.
    """

    def __init__(self, device: Device, complain: Callable, told: Callable, patience: Callable):
        self.device, self._complain, self._told, self._patience = device, complain, told, patience
        self._said: set[str] = set()
        self._shown = 0
        self._answers = (
            self._hello,
            self._alloc,
            self._free,
            self._module,
            self._unload,
            self._function,
            self._global,
            self._launch,
            self._properties,
            self._memory_info,
            self._line,
        )  # fmt: skip  in the order of the numbers in standin.h

    def run(self, command: list[str], environment: dict[str, str]) -> int:
        """Runs a program to its end and returns its exit code. OSError if it cannot be started."""
        with (
            tempfile.TemporaryDirectory(prefix="ptxsim-") as folder,
            socket.socket(socket.AF_UNIX) as listener,
        ):
            path = str(Path(folder) / "socket")
            listener.bind(path)
            listener.listen()
            process = subprocess.Popen(command, env=environment | {"PTXSIM_SOCKET": path})
            self.device.process = process.pid
            try:
                self._serve(listener, process)
            finally:
                if process.poll() is None:
                    process.kill()
            return process.wait()

    def _serve(self, listener: socket.socket, process: subprocess.Popen) -> None:
        end = os.pidfd_open(process.pid)
        with selectors.DefaultSelector() as waiting:
            waiting.register(listener, selectors.EVENT_READ)
            waiting.register(end, selectors.EVENT_READ)
            while True:
                ready: list[Any] = [key.fileobj for key, _ in waiting.select()]
                for source in ready:
                    if source is listener:
                        waiting.register(listener.accept()[0], selectors.EVENT_READ)
                    elif source is not end and not self._answer(source):
                        waiting.unregister(source)
                        source.close()
                if ready == [end]:
                    break
        os.close(end)

    def _answer(self, client: socket.socket) -> bool:
        """Reads one request and answers it; returns False if the connection has ended."""
        head = _receive(client, _HEAD.size)
        if head is None:
            return False
        number, size = _HEAD.unpack(head)
        data = _receive(client, size)
        if data is None:
            return False
        try:
            status, reply = self._answers[number](data)
        except CudaError as error:
            status, reply = error.code, b""
            if error.message:
                self._say(error.message)
        while self._shown < len(self.device.records):
            self._told(self.device.records[self._shown])
            self._shown += 1
        try:
            client.sendall(_ANSWER.pack(status, len(reply)) + reply)
        except OSError:
            return False
        return True

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._complain(line)

    # ---- requests ----

    def _hello(self, data: bytes) -> tuple[int, bytes]:
        arena = self.device.arena
        table = attribute_table(self.device.options.chip)
        return 0, struct.pack("<QQ", BASE, 2 * arena.size) + table + arena.path.encode().ljust(256, b"\0")

    def _alloc(self, data: bytes) -> tuple[int, bytes]:
        address = self.device.arena.allocate(*struct.unpack("<QQ", data))
        return (OUT_OF_MEMORY, b"") if address is None else (0, struct.pack("<Q", address))

    def _free(self, data: bytes) -> tuple[int, bytes]:
        return (0 if self.device.arena.release(*struct.unpack("<Q", data)) else 1), b""

    def _module(self, data: bytes) -> tuple[int, bytes]:
        return 0, struct.pack("<I", self.device.add_module(data))

    def _unload(self, data: bytes) -> tuple[int, bytes]:
        self.device.modules.pop(struct.unpack("<I", data)[0], None)
        return 0, b""

    def _function(self, data: bytes) -> tuple[int, bytes]:
        name = data[4:].decode()
        with self._patience(f"reading the PTX of {short(name)}"):
            return 0, self.device.facts(struct.unpack_from("<I", data)[0], name)

    def _global(self, data: bytes) -> tuple[int, bytes]:
        return 0, struct.pack(
            "<QQ", *self.device.variable(struct.unpack_from("<I", data)[0], data[4:].decode())
        )

    def _launch(self, data: bytes) -> tuple[int, bytes]:
        module, length, *numbers = _LAUNCH.unpack_from(data)
        grid, block, cluster = (tuple(numbers[i : i + 3]) for i in (0, 3, 6))
        cooperative, shared = bool(numbers[9]), numbers[10]
        name = data[_LAUNCH.size : _LAUNCH.size + length].decode()
        cluster = cluster if all(cluster) else (1, 1, 1)
        params = data[_LAUNCH.size + length :]
        with self._patience(f"running {launch_text(name, grid, block)}"):
            code, printed = self.device.launch(
                module, name, grid, block, cluster, shared, params, cooperative
            )
        return code, printed.encode()

    def _properties(self, data: bytes) -> tuple[int, bytes]:
        return 0, properties(self.device.options.chip, *struct.unpack("<i", data))

    def _memory_info(self, data: bytes) -> tuple[int, bytes]:
        arena = self.device.arena
        return 0, struct.pack("<QQ", arena.size - arena.used, arena.size)

    def _line(self, data: bytes) -> tuple[int, bytes]:
        name, space, rest = data.decode("utf-8", "replace").partition(" ")
        self._say(brief(name) + space + rest)
        return 0, b""


def _receive(client: socket.socket, size: int) -> bytes | None:
    """Exactly `size` bytes, or None if the connection has ended."""
    parts, left = [], size
    while left:
        try:
            part = client.recv(min(left, 1 << 20))
        except OSError:
            return None
        if not part:
            return None
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
