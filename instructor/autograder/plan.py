"""Plans the runs of a step: sizes from the rubric and hidden.toml, seeds from the salt and the submission."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from instructor.autograder.families import SMS, drawn, few_sms, many_tiles
from tirxlab.rubric import Size, load_rubric
from tirxlab.steps import size_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HIDDEN = Path(__file__).resolve().parents[1] / "hidden.toml"
PERSISTENT = 6  # from this step on a launch has 148 CTAs at any size: a public size gets only one run
ADVERSE = "adverse"  # the order in which hidden sizes are run
PUBLIC_RUNS = ("random", "program"), ("integers", "seeded")
LONG = 1024  # least K of a public size that a persistent kernel runs in program order: its clusters are alike


@dataclass(frozen=True)
class Hidden:
    """What the course keeps secret."""

    salt: str
    extra_orders: int
    sizes: dict[int, tuple[Size, ...]]
    few_sms: dict[tuple[int, Size], int] = field(default_factory=dict)  # (step, size) -> SM_COUNT of that run


@dataclass(frozen=True)
class Run:
    """One launch of one step."""

    step: int
    size: Size  # (M, N, K)
    data: str  # "random", "integers": small whole numbers, whose product is exact, or "windows" of one pool
    order: str | int  # as ptxsim takes it
    seed: int  # of the data
    secret: bool = False  # nothing that reveals the size may be shown
    record: bool = False  # record what the kernel does: the implementation is judged by this run
    drawn: bool = False  # at a size that nobody knew before, which may be shown; runs without the checks
    alone: bool = False  # runs one cluster, which nobody knew before, with many tiles; judged like `record`
    sms: int | None = None  # SMs for which the kernel is built; None: as the rubric says for the size

    @property
    def launch(self) -> tuple[Size, int | None]:
        """The size and SMs that the kernel is built for."""
        return self.size, self.sms

    @property
    def place(self) -> str:
        """The size as a student would ask for it."""
        few = f" with SM_COUNT = {self.sms}" if self.sms not in (None, SMS) else ""
        return size_text(self.size) + few

    def on_all_sms(self) -> Run:
        """The drawn run for a kernel that ignores the number of SMs."""
        size = drawn(self.step, self.seed)
        assert size is not None
        return replace(self, size=size, sms=SMS)


def load_hidden(path: Path = HIDDEN) -> Hidden:
    """Reads hidden.toml; raises ValueError, in one line, if it is malformed."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        sizes: dict[int, tuple[Size, ...]] = {}
        few: dict[tuple[int, Size], int] = {}
        for step, rows in ((int(step), rows) for step, rows in data["sizes"].items()):
            sizes[step] = tuple((m, n, k) for m, n, k, *_ in rows)
            few |= {(step, (m, n, k)): int(sms) for m, n, k, *more in rows for sms in more}
        return Hidden(str(data["salt"]), int(data["extra_orders"]), sizes, few)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name}: {error}; see the one that came with the lab") from None


def terms(hidden: Hidden) -> str:
    """A hash of the rubric and the hidden terms; submissions graded under other terms are graded again."""
    return hashlib.sha256(repr((load_rubric(), hidden)).encode()).hexdigest()[:16]


def secret_seed(hidden: Hidden, digest: str, *parts) -> int:
    """A seed below 2**31, derived from the salt, the submission's hash and its purpose (`parts`)."""
    text = "\0".join([hidden.salt, digest, *map(str, parts)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def speed_seed(hidden: Hidden, digest: str, step: int) -> Callable[[Size], int]:
    """A function from a size to the seed of the inputs with which the step is timed."""
    return lambda size: secret_seed(hidden, digest, step, size, "speed")


def plan(step: int, digest: str, hidden: Hidden, full: bool = False) -> list[Run]:
    """The runs of a step, the cheap ones first. `full`: also every public size of the simulator.

    The recorded run is at a size drawn for this submission: nobody can use a technique at that size alone,
    and it reveals nothing about the hidden sizes.
    """
    rubric = load_rubric()
    public = list(dict.fromkeys([*rubric.graded[step], *(rubric.quick_sizes(step) if full else ())]))
    runs = []
    for size in public:
        for data, order in PUBLIC_RUNS if step < PERSISTENT else (("random", _order_at(size)),):
            runs.append(_run(hidden, digest, step, size, data, order))
    for size in hidden.sizes.get(step, ()) or public[:1]:
        secret = size not in public
        for data, order in (("integers", ADVERSE), *[("random", "seeded")] * hidden.extra_orders):
            runs.append(_run(hidden, digest, step, size, data, order, secret, len(runs)))
    return _with_record(step, digest, hidden, runs)


def _with_record(step: int, digest: str, hidden: Hidden, runs: list[Run]) -> list[Run]:
    """Adds the runs at drawn sizes, by which the implementation is judged; step 1 records a public run."""
    seed = secret_seed(hidden, digest, step, "drawn")
    sms = few_sms(step)
    size = drawn(step, seed, sms)
    if size is None:
        last = max(n for n, run in enumerate(runs) if not run.secret)
        return [replace(run, record=n == last) for n, run in enumerate(runs)]
    runs = [*runs, Run(step, size, "integers", seed % 1000, seed, record=True, drawn=True, sms=sms)]
    seed = secret_seed(hidden, digest, step, "many tiles")
    size = many_tiles(step, seed)
    order = seed % 1000
    return [*runs, *([Run(step, size, "windows", order, seed, drawn=True, alone=True)] if size else [])]


def _order_at(size: Size) -> str:
    """The order of a persistent kernel's only run at a public size; drawn sizes run in seeded orders."""
    return "program" if size[2] >= LONG else "seeded"


def _run(hidden, digest: str, step: int, size: Size, data: str, order: str, secret=False, number=0) -> Run:
    seed = secret_seed(hidden, digest, step, size, data, order, number)
    sms = hidden.few_sms.get((step, size)) if secret else None
    return Run(step, size, data, seed % 1000 if order == "seeded" else order, seed, secret, sms=sms)
