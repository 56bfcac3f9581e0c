"""`./lab reset S`: put a step back to its skeleton; the file as it was is kept beside it."""

from lab_cli.common import KernelsOption, StepsArgument, UserError, kernels_file, parse_steps
from tirxlab.steps import SKELETON, read_text, sections


def run(step: StepsArgument, kernels: KernelsOption = None) -> None:
    """Put a step back to its skeleton. The file as it was is kept as gemm_kernels.py.bak, .bak2, ..."""
    steps = parse_steps(step)
    path = kernels_file(kernels)
    if not SKELETON.exists():
        raise UserError(f"{SKELETON} is missing; get it again with git checkout, or run ./lab skeleton")
    text = read_text(path)
    restored = with_skeleton(text, read_text(SKELETON), steps)
    if restored == text:
        print(f"{path.name}: nothing to do, the text is already that of the skeleton")
        return
    copy = next(name for name in copies(path) if not name.exists())
    copy.write_text(text, encoding="utf-8")
    path.write_text(restored, encoding="utf-8")
    print(
        f"{path.name}: step {', '.join(map(str, steps))} is a skeleton again; the old text is in {copy.name}"
    )


def with_skeleton(text: str, skeleton: str, steps: list[int]) -> str:
    """The text with the given steps taken from the skeleton, everything else untouched."""
    mine, original = sections(text), sections(skeleton)
    for step in steps:
        if step not in mine:
            raise UserError(f"no `def hgemm_v{step}(` in it, so its place is unknown; write that line first")
        mine[step] = original[step]
    return "".join(mine.values())


def copies(path):
    yield path.with_name(path.name + ".bak")
    number = 2
    while True:
        yield path.with_name(f"{path.name}.bak{number}")
        number += 1
