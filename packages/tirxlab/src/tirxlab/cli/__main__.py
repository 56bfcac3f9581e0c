"""Entry of `python -m tirxlab.cli` and of the `lab` script, which names this file: wherever the user stands,
this copy of the lab is the one that runs.
"""

import gc
import os
import sys

if not __package__:
    _LAB = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 5))
    sys.path[:1] = [_LAB, *(os.path.join(_LAB, "packages", name, "src") for name in ("tirxlab", "ptxsim"))]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:3])  # and for the processes that it starts


def command() -> int:
    """The command itself; its imports come after the fork, so that the parent stays small."""
    gc.set_threshold(100_000)  # imports make a lot that stays
    try:
        return started()
    except ImportError as error:
        from tirxlab import damaged

        if damaged.is_ours(error):
            raise
        print(f"lab: {damaged.told(error)}", file=sys.stderr)
        return 2
    finally:
        gc.freeze()  # the end of the process looks for no garbage in it


def started() -> int:
    if sys.argv[1:2] == ["check"]:
        from tirxlab.cli import prestart

        if prestart.wanted(*sys.argv[1:]):
            prestart.start()
    from tirxlab.cli.app import main

    return main()


if __name__ == "__main__":
    from tirxlab.cli.watch import watched

    raise SystemExit(watched(command))
