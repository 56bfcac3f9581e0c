"""Run an artifact on a real GPU, in a child process under a time limit; `launcher` runs it in this process.

Needs cuda-bindings, a driver, and torch for the arrays (numpy arrays work, too). The GPU makes none of
ptxsim's checks: a run is "not checked" at best, and an "error" if the chip reports a fault or never finishes.
"""

from __future__ import annotations

import atexit
import functools
import os
import queue
import subprocess
import sys
import threading
from dataclasses import dataclass

import numpy as np

from tirxlab.artifact import Artifact
from tirxlab.checkout import environment
from tirxlab.devices import DeviceError, Run, by_name, driver, worker

NAME = "cuda"
TIMEOUT = 20.0  # seconds a launch may take ($LAB_TIMEOUT); the slowest reference kernel takes 7 ms
NOT_CHECKED = [
    "races",
    "proxy fences",
    "barriers",
    "uninitialised memory",
    "out-of-bounds accesses",
    "TMEM use",
]
_START_LIMIT = 120.0  # seconds for making the context, copying and loading, before the launch


def run(artifact: Artifact, arrays, *, order="program", checks: bool = True, trace: bool = False) -> Run:
    """Launch once; outputs are written into the given arrays. `order`, `checks` and `trace` are only for sim.

    Raises DeviceError if the arrays or the GPU do not fit. A launch that faults or does not end within
    $LAB_TIMEOUT seconds (default 20) is an "error" with a finding; its process is killed.
    """
    buffers = by_name(artifact, arrays)
    try:
        reply, blobs = _ask(artifact, buffers, warmup=0, repeat=0)
    except _Failed as error:
        return Run({}, 0.0, "error", [_finding(error)], list(NOT_CHECKED), ran=False)
    outputs = {b.name: buffers[b.name] for b in artifact.outputs}
    for array, data in zip(outputs.values(), blobs, strict=True):
        _write(array, data)
    return Run(outputs, reply["seconds"], "not checked", [], list(NOT_CHECKED), {}, reply["stdout"])


def measure(artifact: Artifact, arrays, *, warmup: int = 10, repeat: int = 30) -> float:
    """Median milliseconds of one launch, by CUDA events, after `warmup` launches.

    Before each launch the outputs are overwritten and the L2 cache is flushed. Afterwards the given arrays
    hold the outputs of the last launch.
    """
    return _timed(artifact, arrays, {}, warmup, repeat)[0]


@dataclass(frozen=True)
class Seen:
    """Rows of an output of one timed launch, and where its inputs began."""

    at: dict[str, int]  # input -> its first element in its pool
    output: str
    rows: list[int]
    values: np.ndarray  # the values of these rows


def prove(
    artifact: Artifact, arrays, pools: dict[str, np.ndarray], *, warmup: int = 10, repeat: int = 30
) -> tuple[float, list[Seen]]:
    """As `measure`, but each launch has other inputs, from anywhere in their pools; also returns rows of each
    launch's outputs.

    pools: input -> a flat array that begins with it and continues with equally random numbers. The last
    launch has the given inputs.
    """
    ms, reply, held = _timed(artifact, arrays, pools, warmup, repeat)
    info = {buffer.name: buffer for buffer in artifact.outputs}
    seen = []
    for one, data in zip(reply["seen"], held, strict=True):
        values = np.frombuffer(data, np.dtype(info[one["name"]].dtype))
        shape = len(one["rows"]), *info[one["name"]].shape[1:]
        seen.append(Seen(one["at"], one["name"], one["rows"], values.reshape(shape)))
    return ms, seen


def _timed(artifact: Artifact, arrays, pools: dict, warmup: int, repeat: int):
    """(milliseconds, the worker's reply, its blobs other than the outputs)."""
    buffers = by_name(artifact, arrays)
    try:
        reply, blobs = _ask(artifact, buffers, warmup=warmup, repeat=repeat, pools=pools)
    except _Failed as error:
        raise DeviceError(str(error)) from None
    asked = 1 + warmup + repeat  # the first shows that the kernel ends
    if reply["launches"] != asked:
        raise DeviceError(f"{reply['launches']} launches instead of {asked}: the time means nothing")
    for buffer, data in zip(artifact.outputs, blobs, strict=False):
        _write(buffers[buffer.name], data)
    return reply["ms"], reply, blobs[len(artifact.outputs) :]


def launcher(artifact: Artifact, device: int = 0):
    """A function of torch CUDA tensors, in the order of the kernel's buffers.

    It launches on torch's current stream and returns at once. No watchdog: if it hangs, so does this process.
    """
    import torch

    kernel = driver.Kernel(artifact, device)

    def launch(*tensors):
        buffers = by_name(artifact, tensors)
        for name, tensor in buffers.items():
            if getattr(tensor, "device", None) is None or tensor.device != torch.device("cuda", device):
                raise DeviceError(f"{name} must be on cuda:{device}")
        stream = torch.cuda.current_stream(device).cuda_stream
        kernel.launch({name: tensor.data_ptr() for name, tensor in buffers.items()}, stream)

    return launch


class _Failed(RuntimeError):
    """The kernel faulted or hung; the process that ran it is gone."""

    def __init__(self, kind: str, message: str, hint: str = ""):
        super().__init__(message)
        self.kind, self.hint = kind, hint


def _finding(error: _Failed):
    from ptxsim import Finding

    return Finding(error.kind, "error", str(error), error.hint)


def _limit() -> float:
    text = os.environ.get("LAB_TIMEOUT") or TIMEOUT
    try:
        return float(text)
    except ValueError:
        raise DeviceError(f"LAB_TIMEOUT={text!r} is not a number of seconds") from None


class _Worker:
    """A child process, and a thread that reads its replies, so that waiting for one can have a limit."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
        )
        self.requests, self.answers = filter(None, (self.process.stdin, self.process.stdout))
        self.replies: queue.Queue = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        atexit.register(self.kill)

    def _read(self) -> None:
        while (message := worker.receive(self.answers)) is not None:
            self.replies.put(message)
        self.replies.put(None)

    def next(self, seconds: float):
        """The next message, None if the process ended; queue.Empty after `seconds`."""
        return self.replies.get(timeout=seconds)

    def kill(self) -> None:
        self.process.kill()
        atexit.unregister(self.kill)


class _Pool:
    """The one worker of this process, started when first needed and again after it is lost."""

    def __init__(self, command: list[str]):
        self.command, self.lock = command, threading.Lock()
        self.worker: _Worker | None = None

    def get(self) -> _Worker:
        if self.worker is None or self.worker.process.poll() is not None:
            self.worker = _Worker(self.command)
        return self.worker

    def drop(self) -> None:
        if self.worker is not None:
            self.worker.kill()
        self.worker = None


@functools.cache
def _pool() -> _Pool:
    return _Pool([sys.executable, "-m", "tirxlab.devices.worker"])


def _ask(
    artifact: Artifact, buffers: dict, warmup: int, repeat: int, pools: dict | None = None
) -> tuple[dict, list[bytearray]]:
    """One request to the worker, under the time limits."""
    inputs = [b.name for b in artifact.buffers if b.role == "in"] if pools else []
    more = [_bytes((pools or {})[name]) for name in inputs]
    head = {"warmup": warmup, "repeat": repeat, "device": _device_of(buffers)}
    limit = _limit()
    with _pool().lock:
        child = _pool().get()
        try:
            worker.send(child.requests, head, [artifact.to_bytes(), *map(_bytes, buffers.values()), *more])
            reply = child.next(_START_LIMIT)
            if reply is not None and reply[0]["event"] == "launched":
                reply = child.next(limit)
        except queue.Empty:
            _pool().drop()
            raise _Failed(
                "deadlock",
                f"the kernel did not finish within {limit:g} s and its process was killed",
                "run `./lab check S --device sim`: the simulator names who waits for whom",
            ) from None
        except BrokenPipeError:
            reply = None
        except BaseException:  # also Ctrl-C: nobody would read what is left in the pipe
            _pool().drop()
            raise
        return _checked(reply)


def _checked(reply) -> tuple[dict, list[bytearray]]:
    if reply is None:
        _pool().drop()
        raise _Failed("illegal", "the process that ran the kernel died")
    head, blobs = reply
    if head["event"] == "error":
        _pool().drop()
        if head["kind"] == "device":
            raise DeviceError(head["message"])
        raise _Failed(
            "illegal",
            f"the CUDA driver reports {head['message']}",
            "run it on --device sim for the cause",
        )
    return head, blobs


def _device_of(buffers: dict) -> int:
    tensors = [array for array in buffers.values() if not isinstance(array, np.ndarray)]
    indices = {tensor.device.index for tensor in tensors} - {None}
    if len(indices) > 1:
        raise DeviceError(f"the arrays are on several GPUs: {sorted(indices)}")
    return indices.pop() if indices else 0


def _bytes(array):
    """The bytes of a numpy array or a torch tensor."""
    if isinstance(array, np.ndarray):
        return array.reshape(-1).view(np.uint8)
    import torch

    return array.detach().reshape(-1).view(torch.uint8).cpu().numpy()


def _write(array, data: bytearray) -> None:
    """Put result bytes into a numpy array or a torch tensor."""
    if isinstance(array, np.ndarray):
        array.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
        return
    import torch

    array.reshape(-1).view(torch.uint8).copy_(torch.frombuffer(data, dtype=torch.uint8))
