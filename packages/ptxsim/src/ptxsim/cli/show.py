"""`ptxsim show FILE`: a module's variables and kernels, and which kernels would be refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ptxsim.cli.common import ARCH, FILE
from ptxsim.cli.files import module_of
from ptxsim.driver.telling import shape
from ptxsim.report.names import readable

_SPACES = ("global", "shared", "local", "param", "const")
_BY_MODIFIER = ("wgmma", "tcgen05", "mbarrier", "cp", "fence", "barrier", "bar", "tensormap")
_MOST = 12  # families of instructions in a line


def command(
    file: Path = FILE,
    arch: str = ARCH,
) -> int:
    """Show a module's kernels: parameters, shared memory, instructions by family, source files, refusals."""
    loaded, text = module_of(file, arch)
    module = loaded.module
    print(f"{file}: PTX {module.version} for {', '.join(module.target)}, {text.count(chr(10)) + 1} lines")
    variables = [f"{name} ({loaded.variables.size(name)} B)" for name in loaded.variables]
    if variables:
        more = f" and {len(variables) - 8} more" if len(variables) > 8 else ""
        print(f"variables: {', '.join(variables[:8])}{more}")
    for name in loaded.programs:
        print("\n".join(["", *kernel_lines(loaded, name)]))
    return 0


def kernel_lines(loaded, name: str) -> list[str]:
    """The lines that describe a kernel."""
    import ptxsim
    from ptxsim.machine.global_memory import shared_variables

    function = loaded.module.functions[name]
    lines = [f"kernel {readable(name)}"]
    if readable(name) != name:
        lines.append(f"  entry: {name}")
    params = [f"{p.type}{f'[{p.count}]' if p.count > 1 else ''} ({p.size} B)" for p in function.params]
    lines.append(f"  parameters: {', '.join(params) or 'none'}")
    for directive in ("maxntid", "reqntid", "minnctapersm", "reqnctapercluster", "maxnreg"):
        if directive in function.directives:
            x, y, z = (*map(int, function.directives[directive]), 1, 1)[:3]
            lines.append(f"  .{directive} {shape((x, y, z))}")
    try:
        program = loaded.programs[name]
    except ptxsim.PtxError as error:
        return [*lines, f"  refused: {error}"]
    shared = shared_variables(program, loaded.module)
    static = sum(v.size for v in shared if not v.extern)
    dynamic = " and a dynamic part" if any(v.extern for v in shared) else ""
    lines.append(f"  shared memory: {static} B{dynamic}; local memory: {program.local_bytes} B a thread")
    families = Counter(family(i) for i in program.by_row.values())
    told = ", ".join(f"{word} {count}" for word, count in families.most_common(_MOST))
    rest = f" and {len(families) - _MOST} other families" if len(families) > _MOST else ""
    lines.append(f"  {sum(families.values())} instructions: {told}{rest}")
    known = loaded.module.files
    files = sorted({known[i.at.loc[0]] for i in program.by_row.values() if i.at.loc and i.at.loc[0] in known})
    if files:
        lines.append(f"  from: {', '.join(files)}")
    return lines


def family(instr) -> str:
    """The group in which an instruction is counted: `wgmma.mma_async`, `ld.global`, `add`."""
    if instr.op in ("ld", "st", "atom", "red"):
        space = next((m for m in instr.mods if m.startswith(_SPACES)), "")
        return f"{instr.op}.{space.partition('::')[0]}" if space else instr.op
    return ".".join((instr.op, *instr.mods[:1])) if instr.op in _BY_MODIFIER else instr.op
