"""The `Tx` object: the course's spelling of TIRX. Names not listed here are TVM's own, unchanged."""

import difflib
import inspect
from types import SimpleNamespace

from tvm import tirx
from tvm.script import tirx as T

from . import memory, ops, shapes
from .checked import Checked, meant
from .conditions import joined
from .docs import documented
from .func import prim_func
from .scopes import id_maker, scope_maker, within

_SCOPES = ("kernel", "cluster", "cta", "warpgroup", "warp", "thread")
_IDS = ("cta_id", "warpgroup_id", "warp_id", "thread_id")
_NAMES = {
    "prim_func": prim_func,
    "Buffer": shapes.buffer,
    "And": joined("And", tirx.And),
    "Or": joined("Or", tirx.Or),
    "PoolAllocator": memory.PoolAllocator,
    "alloc_local": memory.alloc_local,
    "decl_buffer": memory.decl_buffer,
    "address_of": memory.address_of,
    "copy": ops.copy,
    "copy_async": ops.copy_async,
    "cast": ops.cast,
    "gemm_async": ops.gemm_async,
}
_TILE_OPS = (*ops.TILE_OPS, "copy", "copy_async", "cast", "gemm_async")
# Names from TVM's documentation that the course writes differently.
_OTHERWISE = {
    "device_entry": "the body of a kernel goes into `with Tx.kernel():`, without Tx.device_entry()",
    "jit": "a kernel is written under @Tx.prim_func(tirx=True)",
    "Tensor": 'the type of a parameter is Tx.Buffer((M, K), "float16")',
}
# Python's own names, which a kernel uses without `Tx.`.
_PYTHONS = {"range": "; write range(n), or Tx.unroll(n)"}


class _Tx:
    """Attributes are looked up in the course's names first, then in TVM's."""

    def __init__(self):
        for name in ops.TILE_OPS:
            setattr(self, name, ops.other(name))
        for name in _SCOPES:
            setattr(self, name, scope_maker(name))
        for name in _IDS:
            setattr(self, name, id_maker(name))
        for name, value in _NAMES.items():
            setattr(self, name, value)
        self._spell_scopes_in_front()
        self.ptx, self.cuda = Checked(T.ptx, "ptx"), Checked(T.cuda, "cuda")
        for name, value in vars(self).items():
            if inspect.isfunction(value):
                value.__doc__ = documented().get(f"Tx.{name}", value.__doc__)

    def _spell_scopes_in_front(self):
        """Defines `Tx.cta.copy` and `Tx.tile.cta.copy`, as in TVM; `Tx.tile.copy` is a single thread's."""
        self.wg = scope_maker("warpgroup")
        scopes = {name: getattr(self, name) for name in (*_SCOPES[1:], "wg")}
        for name, maker in scopes.items():
            for op in _TILE_OPS:
                setattr(maker, op, within("warpgroup" if name == "wg" else name, getattr(self, op)))
        own = {op: within("thread", getattr(self, op)) for op in _TILE_OPS}
        self.tile = SimpleNamespace(**own, **scopes)

    def __getattr__(self, name: str):
        if name in _OTHERWISE:
            raise AttributeError(_OTHERWISE[name])
        try:
            return getattr(T, name)
        except AttributeError:
            pass
        hint = _PYTHONS.get(name) or meant("", name)
        if not hint:
            close = difflib.get_close_matches(name, [*vars(self), *T.__dict__], 1)
            hint = f"; did you mean Tx.{close[0]}?" if close else ""
        raise AttributeError(f"Tx has no {name!r}{hint}")


Tx = _Tx()
