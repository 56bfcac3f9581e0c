"""What judging a run needs, imported and compiled: by a server of which the judging processes are forks."""

import contextlib
import gc

gc.disable()  # objects made by imports live to the end
with contextlib.suppress(Exception):  # an error comes up again where the import is needed
    import instructor.autograder.judge  # noqa: F401
    import ptxsim

    ptxsim.warm_up()
gc.freeze()
gc.enable()
