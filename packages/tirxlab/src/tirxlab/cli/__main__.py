"""Entry of `python -m tirxlab.cli` and of the `lab` script, which names this file: this copy of the lab runs,
whatever the user's current folder.
"""

import gc
import os
import sys

if not __package__:
    _LAB = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 5))
    sys.path[:1] = [_LAB, *(os.path.join(_LAB, "packages", name, "src") for name in ("tirxlab", "ptxsim"))]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:3])  # for the processes that it starts


def command() -> int:
    """Runs the command. Its imports come after the fork, so that the parent process stays small."""
    gc.set_threshold(100_000)  # imports make many objects that live to the end
    try:
        return started()
    except ImportError as error:
        from tirxlab import damaged

        if damaged.is_ours(error):
            raise
        print(f"lab: {damaged.told(error)}", file=sys.stderr)
        return 2
    finally:
        gc.freeze()  # no search for garbage when the process ends


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
