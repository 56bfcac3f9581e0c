"""Tile operations (`Tx.copy`, `Tx.copy_async`, `Tx.cast`, `Tx.gemm_async`, and TVM's others).

Each takes its scope from the enclosing `with` block. Options are checked here, because TVM accepts
any keyword and ignores those it does not know: a misspelt `acum=False` would silently accumulate.
"""

import difflib
import math

from tvm.script import tirx as T
from tvm.tirx import BufferLoad, BufferRegion, IntImm, is_buffer_var
from tvm.tirx.script import tile as _tile

from .groups import one_group
from .known import settled
from .reach import furthest
from .scopes import current_scope
from .sync import BarrierArray
from .together import one_place

_OPTIONS: dict[str, tuple[str, ...]] = {
    "copy": (),
    "copy_async": (
        *("mbar", "cta_group", "cta_mask", "cache_hint", "use_tma_reduce", "prefetch_tensormap"),
        *("tensormap_l2_promotion", "tma_dtype", "mbarrier_addr"),
    ),
    "cast": (),
    "gemm_async": (
        *("accum", "cta_group", "transA", "transB", "SFA", "SFB", "mma_m", "mma_n"),
        *("descI", "is_AB_tf32", "weight_stationary", "smem_desc"),
    ),
}
_DISPATCHES: dict[str, dict[str | None, str | None]] = {
    "copy_async": {"tma": "tma_auto", "tma_auto": "tma_auto", "tcgen05": None, None: None},
    "gemm_async": {"tcgen05": "tcgen05", None: None},
    "cast": {None: None},
}
TILE_OPS = tuple(_tile._SCOPED_TILE_OP_NAMES)


def _check_options(op: str, options: dict) -> None:
    allowed = _OPTIONS[op]
    for name in options:
        if name in allowed:
            continue
        close = difflib.get_close_matches(name, allowed, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"it knows {sorted(allowed) or 'none'}"
        if op == "copy" and name in _OPTIONS["copy_async"]:
            hint = "a copy by TMA is Tx.copy_async"
        raise TypeError(f"Tx.{op} has no option {name!r}; {hint}")


def _dispatch(op: str, given: str | None) -> str | None:
    known = _DISPATCHES[op]
    if given not in known:
        raise ValueError(f"Tx.{op}(dispatch={given!r}): dispatch is one of {[k for k in known if k]}")
    return known[given]


def _scope(op: str) -> str:
    scope = current_scope()
    if scope in (None, "kernel"):
        raise ValueError(
            f"Tx.{op} needs an execution scope: put it inside `with Tx.cta():`, `with Tx.warpgroup():`, "
            "`with Tx.warp():` or `with Tx.thread():`"
        )
    if scope == "cluster":
        raise ValueError(
            f"Tx.{op} is not done by a cluster: put it inside `with Tx.cta():` or a smaller scope"
        )
    return scope


def _shape(value) -> str:
    return " x ".join(map(str, _extents(value))) or "1"


def _differ(op: str, dst, src) -> ValueError:
    """The error for operands whose shapes differ; usually a thread's registers and tensor memory."""
    said = f"Tx.{op}: dst is {_shape(dst)}, src is {_shape(src)}; both must cover the same shape"
    registers = [value for value in (dst, src) if _memory(value) == "local"]
    if "tmem" in (_memory(dst), _memory(src)) and any(not _is_view(value) for value in registers):
        said += ": the registers of all 128 threads together are a view, buf.view(128, n, layout=...)"
    return ValueError(said)


def _is_view(value) -> bool:
    """Whether a tile is spread over the registers of a warpgroup's threads."""
    return "tid_in_wg" in str(_buffer(value).layout)


def _is_tile(value) -> bool:
    return is_buffer_var(value) or isinstance(value, BufferRegion)


def _extents(value) -> list:
    """Extents of a buffer or slice, without those that are 1; constant ones as ints."""
    parts = [r.extent for r in value.region] if isinstance(value, BufferRegion) else value.shape
    sizes = [int(p) if isinstance(p, int | IntImm) else p for p in parts]
    return [s for s in sizes if not isinstance(s, int) or s != 1]


def _tiles(op: str, **operands) -> None:
    for name, value in operands.items():
        if not _is_tile(value):
            raise TypeError(
                f"Tx.{op}: {name} must be a buffer or a slice of one, not {type(value).__name__} "
                f"(write buf[row, :] or buf[a:b, c:d], not buf[row, col])"
            )
        for extent in _extents(value):
            if str(getattr(getattr(extent, "ty", None), "dtype", "")).startswith("float"):
                raise ValueError(
                    f"Tx.{op}: a slice of {name} has a fraction for its length or start: `/` always gives "
                    "one, write `//`"
                )
            if not isinstance(extent, int):
                raise ValueError(
                    f"Tx.{op}: a slice of {name} has the length {extent}, which is not a constant: slice "
                    "lengths come from Python constants defined outside @Tx.prim_func; only starts may vary"
                )
        _inside(op, value)


def _inside(op: str, value) -> None:
    """ValueError if a slice is known to leave its buffer; in global memory it may, for TMA clips there."""
    if not isinstance(value, BufferRegion) or _memory(value) == "global":
        return
    for dim, (part, size) in enumerate(zip(value.region, value.buffer.shape, strict=True)):
        if all(isinstance(p, int | IntImm) for p in (part.min, part.extent, size)):
            first, end = int(part.min), int(part.min) + int(part.extent)
            if first < 0 or end > int(size):
                raise ValueError(
                    f"Tx.{op}: the slice {first}:{end} of dimension {dim} leaves {value.buffer.name}, which "
                    f"has {int(size)} there"
                )
        elif isinstance(size, int | IntImm):
            end, names = furthest(part.min + part.extent) or (0, [])
            if end > int(size):
                raise ValueError(
                    f"Tx.{op}: dimension {dim} of {value.buffer.name} has {int(size)}, and this slice of it "
                    f"goes up to {end} (at the end of {' and '.join(names)})"
                )


def _one_issuer(op: str, scopes: tuple[str, ...] = ("thread", "warp")) -> None:
    if current_scope() not in scopes:
        raise ValueError(
            f"Tx.{op} is issued by one thread: put it inside "
            '`with Tx.thread(parent="warp")[Tx.ptx.elect_sync()]:` of one warp'
        )


def _no_warpgroup_view(op: str, **operands) -> None:
    """ValueError if a single thread uses a tile that is spread over the warpgroup's threads."""
    for name, value in operands.items():
        if _scope(op) == "thread" and _is_view(value):
            raise ValueError(
                f"Tx.{op}: {name} is a warpgroup's view (128 rows over 128 threads), but this scope is "
                "one thread: use the Tx.alloc_local buffer that the view was made from"
            )


def _one_kind_of_registers(dst, src) -> None:
    """ValueError if several threads cast single threads' registers: a warpgroup casts views."""
    if _scope("cast") != "thread":
        for value in filter(_is_tile, (dst, src)):
            if (
                _memory(value) == "local"
                and "laneid" not in str(_buffer(value).layout)
                and not _is_view(value)
            ):
                raise ValueError(
                    "Tx.cast of Tx.alloc_local registers is each thread's own: put it in `with Tx.thread():` "
                    "(a warpgroup casts from one view of its registers to another)"
                )


def _buffer(value):
    return value.buffer if isinstance(value, BufferRegion) else value


def _memory(value) -> str:
    return _buffer(value).scope()


def _call(op: str, *args, **kwargs):
    return getattr(getattr(_tile, _scope(op)), op)(*args, **kwargs)


def copy(dst, src, dispatch: str | None = None, **options):
    """Synchronous copy, split among the threads of the enclosing scope; shapes must match.

    Reading or writing TMEM needs `with Tx.warpgroup():` and returns after tcgen05.wait.
    """
    _check_options("copy", options)
    dst, src = settled(dst, starts=False), settled(src, starts=False)
    _tiles("copy", dst=dst, src=src)
    if _extents(dst) != _extents(src):
        raise _differ("copy", dst, src)
    if "tmem" not in (_memory(dst), _memory(src)):
        _no_warpgroup_view("copy", dst=dst, src=src)
        _one_type("copy", dst, src)
        if "local" not in (_memory(dst), _memory(src)):
            one_place(_scope("copy"), dst, src)
        return _call("copy", dst, src, dispatch=dispatch)
    if {_memory(dst), _memory(src)} != {"tmem", "local"}:
        raise ValueError(
            f"Tx.copy moves TMEM to or from registers (a view of Tx.alloc_local), not {_memory(src)} -> "
            f"{_memory(dst)}"
        )
    if _scope("copy") != "warpgroup":
        raise ValueError("Tx.copy from or to TMEM needs all 128 threads: put it in `with Tx.warpgroup():`")
    _one_type("copy", dst, src)
    _call("copy_async", dst, src)
    return T.ptx.tcgen05.wait.ld() if _memory(src) == "tmem" else T.ptx.tcgen05.wait.st()


def copy_async(dst, src, dispatch: str | None = None, **options):
    """Asynchronous copy. `dispatch="tma"`: one thread issues a TMA load (needs `mbar=`) or store (no mbar).

    Options of a load: mbar (pointer to the barrier that counts the bytes), cta_group (1 or 2), cta_mask.
    """
    _check_options("copy_async", options)
    dst, src = settled(dst), settled(src)
    _tiles("copy_async", dst=dst, src=src)
    variant = _dispatch("copy_async", dispatch)
    _check_mbar(options.get("mbar"), variant)
    if variant == "tma_auto":
        _check_tma(dst, src, options)
    return _call("copy_async", dst, src, dispatch=variant, **options)


def _one_type(op: str, dst, src) -> None:
    """TypeError for a copy between buffers of different types."""
    types = [str(_buffer(value).dtype) for value in (dst, src)]
    if types[0] != types[1]:
        raise TypeError(f"Tx.{op}: dst is {types[0]}, src is {types[1]}; Tx.cast converts, Tx.{op} does not")


def _check_mbar(mbar, variant: str | None) -> None:
    if mbar is None:
        return
    if variant != "tma_auto":
        raise ValueError('Tx.copy_async: only TMA signals mbar=: add dispatch="tma"')
    if is_buffer_var(mbar) or isinstance(mbar, BufferLoad | BarrierArray):
        raise TypeError("Tx.copy_async: mbar is a pointer: mbar=bar.ptr_to([i])")


def _check_tma(dst, src, options: dict) -> None:
    _one_issuer('copy_async(dispatch="tma")', scopes=("thread",))
    pair = _memory(src), _memory(dst)
    load = pair[0] == "global" and pair[1].startswith("shared")
    if not load and not (pair[0].startswith("shared") and pair[1] == "global"):
        raise ValueError(f'Tx.copy_async(dispatch="tma") moves global <-> shared, not {pair[0]} -> {pair[1]}')
    if any(_buffer(value).layout is None for value in (dst, src) if _memory(value) != "global"):
        raise ValueError("TMA needs the buffer in shared memory to have layout=tma_shared_layout(..)")
    if load and options.get("mbar") is None:
        raise ValueError("a TMA load needs mbar=bar.ptr_to([stage]): the barrier that counts its bytes")
    if not load and "mbar" in options:
        raise ValueError("a TMA store takes no mbar: it completes through commit_group() and wait_group(0)")
    if options.get("cta_group", 1) not in (1, 2):
        raise ValueError(f"cta_group is 1 or 2, not {options['cta_group']}")
    if "tma_dtype" not in options:
        _one_type("copy_async", dst, src)
    if math.prod(_extents(dst)) != math.prod(_extents(src)):
        raise _differ("copy_async", dst, src)
    if _extents(src) == _extents(dst)[::-1] != _extents(dst):
        raise ValueError(
            f"Tx.copy_async: dst is {_shape(dst)}, src is {_shape(src)}: one of the two has its rows and "
            "columns exchanged; the first index counts rows, the last one columns"
        )


def cast(dst, src=None, dispatch: str | None = None, **options):
    """`Tx.cast(dst, src)` converts a buffer element by element; `Tx.cast(value, dtype)` a scalar."""
    if not _is_tile(dst):
        return T.cast(dst, src, **options)
    _check_options("cast", options)
    dst, src = settled(dst), settled(src)
    _one_kind_of_registers(dst, src)
    _tiles("cast", dst=dst, src=src)
    _no_warpgroup_view("cast", dst=dst, src=src)
    if _extents(dst) != _extents(src) and _extents(dst) and _extents(src):
        raise _differ("cast", dst, src)
    return _call("cast", dst, src, dispatch=_dispatch("cast", dispatch))


def gemm_async(C, A, B, accum=False, dispatch: str | None = None, cta_group: int = 1, **options):
    """tcgen05.mma: C (TMEM, fp32) = or += A @ B.T, with A (m, k) and B (n, k) in shared memory.

    accum: False (overwrite), True (add) or a condition. One thread issues it; a commit signals completion.
    """
    _check_options("gemm_async", options)
    C, A, B = settled(C), settled(A), settled(B)
    _tiles("gemm_async", C=C, A=A, B=B)
    _one_issuer("gemm_async")
    if cta_group not in (1, 2):
        raise ValueError(f"cta_group is 1 or 2, not {cta_group}")
    one_group("Tx.gemm_async", cta_group)
    variant = _dispatch("gemm_async", dispatch)
    return _call(
        "gemm_async", C, A, B, accum=_boolean(accum), dispatch=variant, cta_group=cta_group, **options
    )


def _boolean(accum):
    dtype = str(getattr(getattr(accum, "ty", None), "dtype", ""))
    if isinstance(accum, bool) or dtype == "bool":
        return accum
    if dtype.startswith(("int", "uint")):
        return accum != 0
    raise TypeError(f"accum must be a boolean (False, True or a comparison such as k != 0), not {accum!r}")


def other(op: str):
    """One of TVM's other tile operations, in the enclosing scope; on scalars it stays an expression."""

    def call(*args, **kwargs):
        if args and _is_tile(args[0]):
            return _call(op, *args, **kwargs)
        return getattr(T, op)(*args, **kwargs)

    call.__name__ = call.__qualname__ = op
    return call
