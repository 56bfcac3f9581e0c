"""Every command in README and docs is run as it is written, every link followed, every finding known.

Handout pages run in a copy of the students' files whose gemm_kernels.py is finished; the others in a copy of
the project. Only commands for a GPU or for Modal are left out. Those that take long are marked slow.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pages
import pytest
from pages import ROOT
from stand_in_venv import stand_in_venv

from tirxlab.cli.app import commands, load
from tirxlab.cli.common import REFERENCE
from tirxlab.rubric import load_rubric
from tirxlab.steps import size_text

STUDENT_FILES = ("lab", "utils.py", "inspect_cuda.py", "run_modal.py", "pyproject.toml", "README.md", "docs")
STUDENT_FILES += ("packages", "tests", "tracks")
QUICK_LAB = r"(--help|doctor|inspect|handin|port|reset|bench|check 1\b)"
QUICK = re.compile(rf"\./lab {QUICK_LAB}|python inspect_cuda\.py|.*tests/test_step01\.py")
WHEEL = "from tvm.script import tirx as Tx\nfrom tvm.tirx.layout import S, TileLayout\n"
SERVICES = {"modal": "Modal", "dask": "a Dask cluster"}  # not available to these tests
SECONDS = 1800  # for one slow command
SLOW = (pytest.mark.slow, pytest.mark.timeout(SECONDS))


def has_blackwell() -> bool:
    from tirxlab.devices import get_device

    return get_device(None).NAME == "cuda"


def parameters() -> list:
    return [
        pytest.param(c, id=c.text, marks=SLOW * (c.kind == "run" and not QUICK.match(c.text)))
        for c in pages.commands()
        if c.kind
    ]


@pytest.fixture(scope="session")
def venv(tmp_path_factory):
    return stand_in_venv(tmp_path_factory.mktemp("pages") / "venv")


def test_pages_install_nothing(venv, handout):
    """`./lab` would install the copy's packages into the environment in which these tests run."""
    run("./lab --version", handout, venv)
    assert not (venv / "lab-install.log").exists()
    assert subprocess.run([venv / "bin" / "python", "-m", "pip", "--version"]).returncode == 1


@pytest.fixture(scope="session")
def handout(tmp_path_factory):
    """The students' files."""
    folder = tmp_path_factory.mktemp("handout")
    for name in STUDENT_FILES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    """Everything that git tracks or would track."""
    folder = tmp_path_factory.mktemp("project")
    listed = ["git", "ls-files", "-co", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in filter(lambda name: (ROOT / name).is_file(), names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def run(text: str, folder: Path, venv: Path) -> None:
    """Runs a line in a shell, as a reader with .venv/bin on the path would."""
    shutil.copy(
        REFERENCE if "handout" in folder.name else ROOT / "gemm_kernels.py", folder / "gemm_kernels.py"
    )
    (folder / "old_kernels.py").write_text(WHEEL)
    for name in ("submission", "hand-ins"):
        (folder / name).mkdir(exist_ok=True)
        shutil.copy(REFERENCE, folder / name)
    (folder / "roster.csv").write_text(f"submission,student\n{REFERENCE.stem},Ada\n")
    env = {**os.environ, "LAB_VENV": str(venv), "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    env.pop("PYTHONPATH", None)
    command = ["bash", "-o", "pipefail", "-c", text]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, (
        f"{text}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    )


@pytest.mark.parametrize("command", parameters())
def test_command(command, request, venv):
    if command.kind in SERVICES:
        pytest.skip(f"for {SERVICES[command.kind]}")
    if command.kind == "cuda" and not has_blackwell():
        pytest.skip("for a Blackwell GPU")
    run(command.text, request.getfixturevalue("handout" if command.student else "project"), venv)


@pytest.mark.parametrize("page, program", pages.programs())
def test_program(page, program, handout, venv):
    run(f"python - <<'END'\n{program}\nEND", handout, venv)


def test_commands_in_running_text_exist():
    known = commands()
    for page, text in pages.inline_commands():
        name = text.split()[1]
        assert name in known, f"{page}: `{text}`: there is no such command"
        if name != "test":  # the rest of `test` is pytest's
            options = {option for p in load(name).params for option in p.opts}
            unknown = set(re.findall(r"--[a-z-]+", text)) - options - {"--help"}
            assert not unknown, f"{page}: `{text}`: no such option: {', '.join(unknown)}"


def test_sizes_that_pytest_is_to_select_are_sizes_of_the_step():
    """`-k 256x128x320` selects nothing if the step is not tested at that size."""
    for command in pages.commands():
        chosen = re.search(r"test_step(\d+)\.py.* -k \"?([\w ]+)", command.text)
        for word in chosen[2].split(" or ") if chosen else ():
            ids = {size_text(size) for size in load_rubric().sizes(int(chosen[1]))}
            assert word.split()[0] in ids, f"{command.page}: `{command.text}` selects nothing"


@pytest.mark.parametrize("page", pages.pages(), ids=pages.name_of)
def test_links_lead_somewhere(page):
    broken = []
    for link in pages.links(page):
        target, _, anchor = link.partition("#")
        if re.match(r"https?://", link):
            continue
        file = (page.parent / target).resolve() if target else page
        exists = file.exists() and file.is_relative_to(ROOT)
        if not exists or (anchor and file.suffix == ".md" and anchor not in pages.anchors(file)):
            broken.append(link)
    assert not broken, f"{pages.name_of(page)}: broken links: {', '.join(broken)}"


def test_the_first_lines_of_the_readme_are_the_two_commands():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line.split("#")[0].strip() for line in lines[:2]] == ["./lab demo", "./lab test"]


def test_the_landing_page_counts_real_bugs_as_their_table_does():
    table = (ROOT / "research" / "real_bugs" / "README.md").read_text(encoding="utf-8")
    counts = re.search(
        r"(\d+) pairs. Before: (\d+) with the cause first, (\d+) found otherwise, (\d+) missed", table
    )
    pairs, first, found, missed = counts.groups()
    said = (
        f"{pairs} public fixes, reduced to small kernels: {first} named first, {found} found, {missed} missed"
    )
    assert said in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_engineers_door_finds_the_race_of_its_example(monkeypatch, capsys):
    """The command from README's table, on the example of ptxsim's own page."""
    from ptxsim.cli.app import main

    door = re.search(r"`(ptxsim run [^`]+)`", (ROOT / "README.md").read_text())[1]
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.argv", door.split())
    with pytest.raises(SystemExit) as end:
        main()
    page, told = (ROOT / "packages/ptxsim/README.md").read_text(), capsys.readouterr().out
    shown = re.search(r"  error: race: tile \+ 128 B(.*\n    )+hint.*", page)[0]
    assert end.value.code == 1 and shown.replace("\n  ", "\n").strip() in told
    assert f"```cuda\n{(ROOT / 'packages/ptxsim/docs/sums.cu').read_text()}```" in page


def _script():
    """instructor/figures/findings.py"""
    spec = importlib.util.spec_from_file_location("findings", ROOT / "instructor" / "figures" / "findings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_findings_are_those_of_their_bugs():
    bugs = _script().all_bugs()
    shown = pages.findings()
    assert shown
    for page, name, said in shown:
        assert name in bugs, f"{page}: the corpus has no bug {name}"
        if said:
            bug = bugs[name]
            starts = f"{bug.severity}: {bug.kind}: ", f"also: {bug.kind}: "
            assert said.removeprefix("...\n").startswith(starts), f"{page}: {name} shows another finding"


def first_of_each_page():
    """The first finding of each page; all but README's are slow tests."""
    found = {page: (name, said) for page, name, said in reversed(pages.findings()) if said}
    slow = {page: () if page == "README.md" else pytest.mark.slow for page in found}
    return [pytest.param(*pair, id=f"{page}-{pair[0]}", marks=slow[page]) for page, pair in found.items()]


@pytest.mark.parametrize("name, said", first_of_each_page())
def test_findings_are_what_the_simulator_prints(name, said):
    script = _script()
    now = script.said_about(script.all_bugs()[name])
    assert re.sub(r":\d+: \.\.\.", "", now) == re.sub(r":\d+: \.\.\.", "", said)
