"""`./lab reset S`: put a step back to its skeleton; the file as it was is kept beside it."""

from tirxlab.cli.common import (
    STUDENT,
    KernelsOption,
    StepsArgument,
    UserError,
    kernels_file,
    parse_steps,
    shown,
    write_file,
)
from tirxlab.steps import SKELETON, STEPS, StepError, read_skeleton, read_text, sections


def run(step: StepsArgument, kernels: KernelsOption = None) -> None:
    """Put a step back to its skeleton. The file as it was is kept as gemm_kernels.py.bak, .bak2, ...

    If gemm_kernels.py is missing, or with `all` a step has no def, all ten skeletons are written anew.
    """
    steps = parse_steps(step)
    skeleton = read_skeleton()
    if not skeleton:
        raise UserError(f"{SKELETON} is missing; get it again with git checkout, or run ./lab skeleton")
    if kernels is None and not STUDENT.exists():
        write_file(STUDENT, skeleton.encode())
        print(f"{shown(STUDENT)} was missing: all ten steps are skeletons again")
        return
    path = kernels_file(kernels)
    text = read_text(path)
    everything = len(steps) == len(STEPS) and not has_all_steps(text)
    restored = skeleton if everything else with_skeleton(text, skeleton, steps)
    if restored == text:
        print(f"{path.name}: nothing to do, the text is already that of the skeleton")
        return
    copy = next(name for name in copies(path) if not name.exists())
    write_file(copy, text.encode())
    write_file(path, restored.encode())
    print(
        f"{path.name}: step {', '.join(map(str, steps))} is a skeleton again; the old text is in {copy.name}"
    )


def has_all_steps(text: str) -> bool:
    """Whether the text has each step exactly once."""
    try:
        return set(STEPS) <= set(sections(text))
    except StepError:
        return False


def with_skeleton(text: str, skeleton: str, steps: list[int]) -> str:
    """The text with the given steps taken from the skeleton, everything else untouched.

    A step that is missing is put back after the one before it.
    """
    mine, original = sections(text), sections(skeleton)
    if len(mine) == 1:
        raise UserError("the file has no step; begin anew with ./lab reset all (a copy of the file is kept)")
    for step in steps:
        if step not in mine:
            before = max(number for number in mine if number < step)
            mine[before] = mine[before].rstrip() + "\n\n\n"
            place = 1 + list(mine).index(before)
            mine = dict([*list(mine.items())[:place], (step, ""), *list(mine.items())[place:]])
        mine[step] = original[step]
    return "".join(mine.values())


def copies(path):
    yield path.with_name(path.name + ".bak")
    number = 2
    while True:
        yield path.with_name(f"{path.name}.bak{number}")
        number += 1
