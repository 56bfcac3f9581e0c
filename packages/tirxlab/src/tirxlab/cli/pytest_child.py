"""pytest in a process of its own, `python -m tirxlab.cli.pytest_child ARGUMENTS`: Ctrl-C leaves no traceback.

While pytest is still loading, an interrupt would surface in the middle of an import. There is nothing to
report yet, so the process ends at once. From the first test on, pytest handles it and reports what was done.
"""

import os
import re
import signal
import sys
import types

# With these options pytest writes while tests run, or runs none: no bar then.
TALKATIVE = {"-s", "-v", "-vv", "-xvs", "-xv", "-xs", "--verbose", "--capture=no", "--pdb", "--help", "-h"}
INTERRUPTED = 130  # a shell's exit status for SIGINT


class FromTheFirstTest:
    """A plugin that gives SIGINT back to pytest once all tests are collected."""

    def pytest_collection_finish(self) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def one_line():
    """A hook: of pytest's message about unknown options, only the line that names them."""
    import pytest

    try:
        return (yield)
    except pytest.UsageError as error:
        told = re.search(r"error: (unrecognized arguments: .*)", str(error))
        raise pytest.UsageError(told[1]) if told else error from None


def main() -> int:
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    import pytest

    told = types.SimpleNamespace(pytest_cmdline_parse=pytest.hookimpl(wrapper=True)(one_line))
    plugins: list = [FromTheFirstTest(), told]
    if sys.stderr.isatty() and not TALKATIVE & set(sys.argv[1:]):
        from tirxlab.cli.pytest_bar import Bar

        plugins.append(Bar(os.dup(2)))
    return int(pytest.main(sys.argv[1:], plugins=plugins))


if __name__ == "__main__":
    sys.exit(main())
