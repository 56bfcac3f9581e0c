"""The process that runs kernels for `cuda.py`, so that a kernel that hangs or faults harms nothing else.

A message is one JSON line, followed by the bytes that it announces. The process ends after any error, because
a CUDA context is unusable after a fault.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from typing import IO


def send(pipe: IO[bytes], head: dict, blobs=()) -> None:
    """Write one message; `blobs` are bytes-like."""
    blobs = [memoryview(b).cast("B") for b in blobs]
    pipe.write(json.dumps({**head, "sizes": [b.nbytes for b in blobs]}).encode() + b"\n")
    for blob in blobs:
        pipe.write(blob)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[dict, list[bytearray]] | None:
    """Read one message; None at the end of the stream."""
    line = pipe.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    sizes = head.pop("sizes")
    blobs = [bytearray(pipe.read(size)) for size in sizes]
    return (head, blobs) if [len(blob) for blob in blobs] == sizes else None


def main(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Serve until the parent closes the pipe."""
    from tirxlab.devices import DeviceError
    from tirxlab.devices.driver import LaunchError

    while (message := receive(requests)) is not None:
        try:
            send(replies, *_serve(*message, replies))
        except (DeviceError, LaunchError) as error:
            kind = "device" if isinstance(error, DeviceError) else "launch"
            send(replies, {"event": "error", "kind": kind, "message": str(error)})
            return


def _serve(head: dict, blobs: list[bytearray], replies: IO[bytes]) -> tuple[dict, list]:
    """Run or time one artifact. The first blob is the artifact; then come the buffers in order and, if the
    inputs are to change from launch to launch (launch_inputs.py), a pool for each input.
    """
    from tirxlab.artifact import Artifact
    from tirxlab.devices.driver import Kernel, call
    from tirxlab.devices.launch_inputs import Inputs

    with tempfile.NamedTemporaryFile(suffix=".lab") as file:
        file.write(blobs[0])
        file.flush()
        artifact = Artifact.load(file.name)
    kernel = Kernel(artifact, head["device"])
    driver = kernel.driver
    pointers = {}
    for buffer, data in zip(artifact.buffers, blobs[1:], strict=False):
        pointers[buffer.name] = int(call(driver.cuMemAlloc, len(data)))
        call(driver.cuMemcpyHtoD, pointers[buffer.name], bytes(data), len(data))
    send(replies, {"event": "launched"})
    start = time.perf_counter()
    kernel.launch(pointers)
    with _captured_stdout() as printed:
        call(driver.cuCtxSynchronize)  # also flushes what the kernel printed
    reply = {"event": "done", "seconds": time.perf_counter() - start, "stdout": printed.text, "ms": None}
    held: list[bytearray] = []
    if head["repeat"]:
        outputs = [(pointers[b.name], len(d)) for b, d in _outputs(artifact, blobs)]
        pools = blobs[1 + len(artifact.buffers) :]
        inputs = Inputs(driver, artifact, blobs[1:], pools, pointers)
        times = head["warmup"], head["repeat"]
        reply["ms"] = kernel.timed(pointers, *times, poison=outputs, before=inputs.before, after=inputs.after)
        call(driver.cuCtxSynchronize)
        inputs.free()
        reply["seen"], held = inputs.seen, inputs.held
    reply["launches"] = kernel.launches
    results = []
    for buffer, data in _outputs(artifact, blobs):
        call(driver.cuMemcpyDtoH, data, pointers[buffer.name], len(data))
        results.append(data)
    for pointer in pointers.values():
        call(driver.cuMemFree, pointer)
    call(driver.cuModuleUnload, kernel.module)
    return reply, results + held


def _outputs(artifact, blobs: list[bytearray]) -> list[tuple]:
    """(buffer, its bytes) for the buffers that the kernel writes."""
    pairs = zip(artifact.buffers, blobs[1:], strict=False)
    return [(buffer, data) for buffer, data in pairs if buffer.role != "in"]


class _captured_stdout:
    """Redirects file descriptor 1, to which the driver writes printf output bypassing Python, to a file."""

    text = ""

    def __enter__(self):
        sys.stdout.flush()
        self.kept, self.file = os.dup(1), tempfile.TemporaryFile()
        os.dup2(self.file.fileno(), 1)
        return self

    def __exit__(self, *_):
        os.dup2(self.kept, 1)
        os.close(self.kept)
        self.file.seek(0)
        self.text = self.file.read().decode(errors="replace")
        self.file.close()


if __name__ == "__main__":
    # Replies take over stdout's descriptor; whatever is printed by accident goes to stderr.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    main(sys.stdin.buffer, replies)
