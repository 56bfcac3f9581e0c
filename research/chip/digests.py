"""Digests of results that must agree to the bit: 2 bits per thread show, mostly, where a row differs, 2 bytes
that it does.
"""

from __future__ import annotations

import hashlib

import numpy as np

WHOLE = 2  # bytes of the digest of a row, which precedes those of its threads
SHOWN = 4  # differing threads that are listed
_PLACES = np.arange(0, 8, 2, dtype=np.uint8)  # of the threads' bits in a byte
_ODD = np.uint64(0x9E3779B97F4A7C15)


def of(rows: np.ndarray) -> np.ndarray:
    """uint8 digests, one row for each row of uint64 with a value per thread;
    the number of threads is a multiple of 4.
    """
    whole = b"".join(hashlib.blake2b(row.tobytes(), digest_size=8).digest()[:WHOLE] for row in rows)
    threads = (rows * _ODD >> np.uint64(62)).astype(np.uint8).reshape(len(rows), -1, 4)
    fours = np.bitwise_or.reduce(threads << _PLACES, axis=2)
    return np.hstack([np.frombuffer(whole, np.uint8).reshape(-1, WHOLE), fours])


def difference(kept: np.ndarray, row: np.ndarray) -> str:
    """Where a row differs from the one whose digests were kept, with its values
    there; "" if it is the same.
    """
    ours = of(row[None])[0]
    if (ours == kept).all():
        return ""
    fours = (ours ^ kept)[WHOLE:, None]
    threads = np.flatnonzero(fours >> _PLACES & 3)
    if not len(threads):
        return "some thread: " + " ".join(f"{int(x):#x}" for x in row)
    told = ", ".join(f"{t}: {int(row[t]):#x}" for t in threads[:SHOWN])
    return f"{len(threads)} threads or more, ptxsim has in {told}"
