"""Entry of `python -m lab_cli` and of the `lab` script, which names this file: wherever the user stands,
this copy of the lab is the one that runs.
"""

import gc
import os
import sys

if not __package__:
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def command() -> int:
    """The command itself; its imports come after the fork, so that the parent stays small."""
    gc.set_threshold(100_000)  # imports make a lot that stays
    if sys.argv[1:2] == ["check"]:
        from lab_cli import ahead

        if ahead.wanted(*sys.argv[1:]):
            ahead.start()
    from lab_cli.app import main

    try:
        return main()
    finally:
        gc.freeze()  # the end of the process looks for no garbage in it


if __name__ == "__main__":
    from lab_cli.watch import watched

    raise SystemExit(watched(command))
