"""What no kernel of this course may read or keep: it could tell a chip from the simulator or launches apart.

A GEMM needs neither a clock nor the number of its SM, and nothing in global memory but its arguments.
"""

from __future__ import annotations

import re
from collections import Counter

_IDENTITY = re.compile(
    r"%(clock(?:_hi|64)?|globaltimer(?:_lo|_hi)?|smid|nsmid|warpid|nwarpid|gridid|pm\d+|envreg\d+|"
    r"reserved_smem_offset_\w+|lanemask_never|total_smem_size|aggr_smem_size)(?![\w%])"
)
# A string may hold /*, a comment a quote; ptxas may take a carriage return for the end of a line.
LEFT_OUT = re.compile(r'"[^"\n]*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_STATE = re.compile(
    r"(?:^|[;{}])[ \t]*(?:\.(?:visible|weak|extern|common)\s+)*"
    r"\.global\b[^;]*?\s([\w$%]+)\s*(?:\[|=|;)",
    re.M,
)
_WORD = re.compile(r"[\w$%]+")
_TEXT = re.compile(r"\$str[\w$]*$")  # formats of printf; judge.py sees if they change


_OUTLIVES = re.compile(
    r"\.L2::evict_last\b|\bcreatepolicy\.[\w.:]*evict_last\b|\bcreatepolicy\.cvt\b|\bapplypriority\b"
)
_HINTED = re.compile(r"\.L2::cache_hint\b[^;]*,\s*([\w$%]+)\s*;")  # the policy is the last operand
_MADE = re.compile(
    r"\b(?:mov\.[bus]64\s+([\w$%]+)\s*,\s*(\w+)|createpolicy\.[\w.:]+\s+([\w$%]+)\s*,[^;]*)\s*;"
)
# The policies evict_normal and evict_first as TVM and CUTLASS write them.
_PASSING = {form(policy) for policy in (0x1000 << 48, 0x12F0 << 48) for form in (str, hex)}


def outlives_a_flush(ptx: str) -> str:
    """Says what keeps data in L2 from one timed launch to the next; "" if nothing does."""
    plain = LEFT_OUT.sub(" ", ptx)
    found = _OUTLIVES.search(plain)
    if kept := found[0] if found else _unknown_policy(plain):
        return f"{kept} keeps data in L2 from one launch to the next, but each is timed with a cold L2"
    return ""


def _unknown_policy(plain: str) -> str:
    """What to call a cache policy that is another number, or whose register is used for anything else."""
    made = [found.groups() for found in _MADE.finditer(plain)]
    others = {name for name, number, _ in made if name and number.lower() not in _PASSING}
    rest = re.sub(r"\.reg\b[^;]*;", " ", _MADE.sub(" ", _HINTED.sub(" ", plain)))
    known = {name or policy for name, _, policy in made} - others - {*_WORD.findall(rest)}
    return "" if known.issuperset(_HINTED.findall(plain)) else "a cache policy like evict_last"


_STARTS = re.compile(r"\b(cudaLaunchDevice\w*|cudaGraphLaunch\w*|cnpLaunch\w*|griddepcontrol\.\w+)")


_WHEN = re.compile(r"__(?:TIME|DATE)__|##|%:%:|\?\?=")  # or a name that is pieced together, as `__TI ## ME__`
_SPLICE = re.compile(r"\\[ \t]*\n")


def changing(cuda: str) -> str:
    """Why this CUDA text may compile to a different kernel each time; "" if it cannot."""
    found = _WHEN.search(_SPLICE.sub("", cuda))
    return f"its CUDA text holds {found[0]}: a kernel must be the same whenever it is built" if found else ""


def broken_rule(ptx: str) -> str:
    """Says what the kernel does that it must not do; "" if nothing."""
    plain = LEFT_OUT.sub(" ", ptx)
    read = _IDENTITY.search(plain)
    if read:
        return (
            f"the kernel reads %{read[1]}, which tells one machine or launch from another; a GEMM needs none"
        )
    started = _STARTS.search(plain)
    if started:
        return f"the kernel starts another one or waits for one ({started[1]:.60}); one launch makes D"
    declared = [name for name in _STATE.findall(plain) if not _TEXT.match(name)]  # libcu++ declares many
    uses = Counter(found[0] for found in _WORD.finditer(plain))
    kept = [name for name in declared if uses[name] > 1]
    if kept:
        return f"the kernel keeps global memory of its own ({kept[0][:60]}); a GEMM needs only its arguments"
    return ""
