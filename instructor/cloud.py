"""Measures the speed of a class on rented B200s, through Modal: `./lab grade-all DIR --speed modal`.

Only validated data travels: artifacts that the simulator found right. Of instructor/ the container gets the
files in SHIPPED, no solution and no hidden size. Every submission has a container of its own, so no kernel
leaves anything for the next student's. Not run on Modal yet: the tests call `time_submission.local`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import modal

import run_modal
from instructor.autograder.speed import Measured, Timed, time_steps

if TYPE_CHECKING:
    from instructor.autograder.class_speed import Parcel

SECONDS = 1800  # Modal's limit for one submission; a launch that hangs is killed after 20
SHIPPED = (
    "instructor/__init__.py",
    "instructor/cloud.py",
    "instructor/autograder/__init__.py",
    "instructor/autograder/speed.py",
)

app = modal.App("tirx-gemm-grading")
image = run_modal.image
if modal.is_local():
    for name in SHIPPED:
        image = image.add_local_file(run_modal.ROOT / name, f"/lab/{name}")


where: dict[str, Any] = run_modal.on_b200 | {"image": image}


@app.function(timeout=SECONDS, single_use_containers=True, include_source=False, **where)
def time_submission(steps: dict[int, list[Timed]], device: str = "cuda") -> Measured:
    """Time what one submission launches, by step; see `time_steps`."""
    return time_steps(steps, device)


def checked_account() -> str:
    """Why Modal cannot be used from here, in one line; "" if it can. Asks Modal, but rents nothing."""
    try:
        modal.Client.from_env()
    except modal.exception.Error as error:
        return " ".join(str(error).split())
    return ""


def rented(parcels: Iterable[Parcel], at_once: int) -> Iterator[tuple[Parcel, Measured | Exception]]:
    """Each parcel with its measurements, or with the cloud's error; uses at most `at_once` B200s.

    Results come in the order given, as `map` does not say which input an error belongs to. A parcel without
    launches needs no GPU.
    """
    with app.run():
        function = time_submission.with_options(max_containers=at_once)
        yield from mapped(parcels, lambda work: function.map(work, return_exceptions=True))


def mapped(parcels: Iterable[Parcel], call) -> Iterator[tuple[Parcel, Measured | Exception]]:
    """Each parcel with its result. `call` maps launches by step to results in order, errors among them."""
    sent: list[Parcel] = []
    empty: list[Parcel] = []

    def work() -> Iterator[dict[int, list[Timed]]]:
        for parcel in parcels:
            (sent if parcel.launches else empty).append(parcel)
            if parcel.launches:
                yield parcel.launches

    for number, result in enumerate(call(work())):
        yield sent[number], result
    for parcel in empty:
        yield parcel, Measured({}, 0.0)
