"""What judging a run needs, imported and compiled: by a server of which the judging processes are forks."""

from tirxlab.pool import prepared


def _warm() -> None:
    import instructor.autograder.judge  # noqa: F401
    import ptxsim

    ptxsim.warm_up()


prepared(_warm)
