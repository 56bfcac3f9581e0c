"""`./lab trace S`: a timeline of one simulated run."""

from lab_cli.common import KernelsOption, StepArgument, UserError, kernels_file, parse_step


def run(step: StepArgument, kernels: KernelsOption = None) -> None:
    """Show when each warp, TMA copy and MMA of a simulated run was busy (needs the simulator's timeline)."""
    parse_step(step)
    kernels_file(kernels)
    raise UserError(
        "the simulator keeps no timeline yet; ./lab compare S S shows its counts, step beside step"
    )
