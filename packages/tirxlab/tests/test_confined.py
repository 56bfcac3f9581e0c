"""What a builder's process can see of the machine, and how far its answers are trusted."""

from pathlib import Path

import pytest

from tirxlab.sandbox import Builder, Limits, strongest
from tirxlab.sandbox.levels import ROOT

SMALL = Limits(seconds=20, memory=600 << 20, printed=1 << 20)
OWN_FILES = ("bubblewrap", "namespaces")
STEP = "from tirxlab import Tx\n\n\ndef hgemm_v1(M, N, K):\n"
LOOKS = (
    f"os.listdir({str(ROOT / 'instructor')!r})",
    f"open({str(ROOT / 'instructor/hidden.toml')!r}).read()",
    f"open({str(ROOT / 'README.md')!r}).read()",
    f"os.listdir({str(Path.home() / '.cache')!r})",
    "__import__('instructor')",
    "os.listdir(os.path.join(sys.path[0], 'research'))",
    "open(os.path.join(sys.path[0], 'utils.py'), 'a')",
    "open('/proc/1/environ').read() and os.kill(2**15 + 7, 0)",
    "os.environ['USER']",
    "__import__('socket').create_connection(('127.0.0.1', 22), 1)",
    "os.open('/dev/kmsg', os.O_RDONLY)",
    "os.fdopen(4).read()",
)
REPLIES = (
    b"\n",
    b"{}\n",
    b"[" * 60000 + b"\n",
    b'{"ok": 1, "bytes": 0}\n',
    b'{"ok": true, "bytes": -1}\n',
    b'{"ok": true, "bytes": 1e9}\n',
    b'{"ok": true, "bytes": 99999999999}\n',
    b'{"ok": true, "bytes": 4}\nPK..',
    b'{"ok": true, "bytes": 0}\n',
    b'{"ok": false, "bytes": 0, "kind": "full marks", "message": "x"}\n',
    b'{"ok": false, "bytes": 0, "kind": "build", "message": 7}\n',
    b"x" * 100_000,
)


@pytest.fixture(scope="module")
def many():
    """A step 1 that does something else at each K: one process serves all sizes."""
    bodies = [f"import os, sys\nfound = {look}\nraise SystemExit" for look in LOOKS]
    bodies += [
        f"import os\ntry: os.write(3, {reply!r})\nexcept OSError: pass\nos._exit(0)" for reply in REPLIES
    ]
    text = STEP
    for number, body in enumerate(bodies, 1):
        text += f"    if K == {64 * number}:\n" + "".join(f"        {line}\n" for line in body.splitlines())
    with Builder(text, limits=SMALL) as builder:
        yield lambda number: builder.build(1, (128, 128, 64 * (number + 1)))


@pytest.mark.skipif(strongest() not in OWN_FILES, reason="this machine has no namespaces to shut a child in")
@pytest.mark.parametrize("look", LOOKS)
def test_a_child_sees_the_public_lab_and_nothing_else(many, look):
    built = many(LOOKS.index(look))
    assert built.kind == "raised" and "sys.exit()" not in built.message


@pytest.mark.parametrize("reply", REPLIES)
def test_a_forged_answer_is_no_artifact(many, reply):
    built = many(len(LOOKS) + REPLIES.index(reply))
    assert built.artifact is None and built.kind == "died" and built.message
