"""Who may import whom: instructor -> tirxlab.cli -> utils -> tirxlab -> ptxsim; TVM in two places only.

Imports are read from the syntax trees, so that lazy imports inside functions count too.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tirxlab.cli.requirements import requirements

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ("utils", "inspect_cuda", "run_modal", "gemm_kernels")
LAYERS = ("ptxsim", "tirxlab", "utils", "tirxlab.cli", "instructor")
OURS = {*LAYERS, *SCRIPTS, "tests", "research", "tracks", "corpus"} - {"tirxlab.cli"}
MAY_IMPORT = {
    "ptxsim": set(),
    "tirxlab": {"ptxsim"},
    "utils": {"tirxlab", "ptxsim"},
    "inspect_cuda": {"utils", "tirxlab", "ptxsim"},
    "gemm_kernels": {"tirxlab"},
    "run_modal": {"inspect_cuda", "utils", "tirxlab", "ptxsim"},
    "tirxlab.cli": {*SCRIPTS, "tracks", "tirxlab", "ptxsim"},
    "instructor": {*SCRIPTS, "corpus", "tirxlab", "ptxsim"},  # corpus: instructor/tests/bugs
    "instructor.commands": {*SCRIPTS, "tirxlab", "ptxsim"},
}
COMMANDS = ("tirxlab.cli", "instructor.commands", "run_modal")  # these alone use what commands share
MAY_IMPORT_TVM = ("tirxlab/dialect/", "tirxlab/toolchain/")
ROOMS = (  # of ptxsim, the ground first: each imports only those before it
    "frontend",
    "isa",
    "jit",
    "events",
    "causes",
    "report",
    "machine",
    "units",
    "lowering",
    "checks",
    "grid",
    "trace",
    "timing",
)
CHECKS = ("race", "diagnosis", "lifecycle")  # rooms of `checks`; the files beside them come before, but for
ALL_CHECKS = "all_checks"  # this one
# With `ptxsim` itself, everything that others may import.
PUBLIC = ("tracing", "forecasting", "observing", "layouts", "rendering")
FACE = tuple(  # on top of all rooms
    f"ptxsim/{name}.py"
    for name in ("__init__", "__main__", "launch", "launch_config", "arguments", "version", *PUBLIC)
)
ABOVE = ("driver", "plugins", "cli")  # rooms that use the face, and those before them


def imported(tree: ast.AST) -> set[str]:
    """Top-level names of every absolute import in the tree."""
    return {name.split(".")[0] for name in modules(tree)}


def violations(unit: str, path: str, tree: ast.Module) -> list[str]:
    """The imports of one file of one unit that are forbidden."""
    names = imported(tree)
    wrong = (names & OURS) - MAY_IMPORT[unit] - {unit.partition(".")[0]}
    if unit not in COMMANDS and any(name.startswith("tirxlab.cli.") for name in modules(tree)):
        wrong.add("tirxlab.cli")
    if "tvm" in names and not path.startswith(MAY_IMPORT_TVM):
        wrong.add("tvm")
    return sorted(wrong)


PLACES = {"ptxsim": "packages/ptxsim/src", "tirxlab": "packages/tirxlab/src"}
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # of statements, handlers and cases
APART = ("tirxlab/cli/", "instructor/commands/", "instructor/tests/", "instructor/bench/")


def base(unit: str) -> Path:
    """The folder from which the unit is imported."""
    return ROOT / PLACES.get(unit.partition(".")[0], ".")


def files(unit: str) -> list[Path]:
    """The unit's files; the commands are units of their own."""
    single = base(unit) / f"{unit}.py"
    found = [single] if single.exists() else sorted((base(unit) / unit.replace(".", "/")).rglob("*.py"))
    inside = [file for file in found if not file.relative_to(base(unit)).as_posix().startswith(APART)]
    return found if unit in COMMANDS else inside


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    """Afterwards the syntax trees are dropped: a search for garbage would look through them all."""
    yield
    tree_of.cache_clear()
    modules.cache_clear()


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def test_a_unit_imports_only_what_lies_below_it():
    found = {}
    for unit in MAY_IMPORT:
        assert files(unit), unit
        for file in files(unit):
            path = file.relative_to(base(unit)).as_posix()
            found[path] = violations(unit, path, tree_of(file))
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement in the tree, including inner blocks; imports are never parts of expressions."""
    blocks = [tree]
    while blocks:
        block = blocks.pop()
        inner = [one for name in BLOCKS for one in getattr(block, name, ())]
        yield from (one for one in inner if isinstance(one, ast.stmt))
        blocks += inner


@cache
def modules(tree: ast.AST) -> set[str]:
    """Full names of every absolute import in the tree: `from ptxsim.isa import mathlib` imports
    ptxsim.isa.mathlib.
    """
    names = set()
    for node in statements(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def climbing(path: str, tree: ast.Module) -> list[str]:
    """Forbidden imports of a ptxsim file from its own package: rooms above its own, and the face."""
    if path in FACE:
        return []
    room = path.split("/")[1]
    ours = [name.split(".") for name in modules(tree) if name.split(".")[0] == "ptxsim"]
    if room in ABOVE:
        return sorted(
            ".".join(n) for n in ours if n[1:2] and n[1] in ABOVE and ABOVE.index(n[1]) > ABOVE.index(room)
        )
    floor = ROOMS.index(room)
    return sorted(".".join(n) for n in ours if n[1] not in ROOMS or ROOMS.index(n[1]) > floor)


def imports_inside(package: Path) -> dict[str, set[str]]:
    """Module -> the modules of the same package that it imports."""
    names = {".".join(f.relative_to(package.parent).with_suffix("").parts): f for f in package.rglob("*.py")}
    graph = {}
    for name, file in names.items():
        found = modules(tree_of(file))
        graph[name] = {n if n in names else n.rpartition(".")[0] for n in found} & set(names) - {name}
    return graph


def test_ptxsim_imports_point_down():
    ours = {file.relative_to(base("ptxsim")).as_posix(): tree_of(file) for file in files("ptxsim")}
    found = {path: climbing(path, tree) for path, tree in ours.items()}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


def floor_of_check(name: str) -> int:
    """Of a file's path without suffix, or of the full name of an import, its parts after `checks`."""
    first = name.split("/")[0]
    return len(CHECKS) if first == ALL_CHECKS else CHECKS.index(first) if first in CHECKS else -1


def test_the_rooms_of_the_checks_import_only_those_below():
    rooms = base("ptxsim") / "ptxsim" / "checks"
    wrong = set()
    for file in rooms.rglob("*.py"):
        path = file.relative_to(rooms).with_suffix("").as_posix()
        names = {n.split(".checks.")[1] for n in modules(tree_of(file)) if n.startswith("ptxsim.checks.")}
        floor = floor_of_check(path)
        wrong |= {(path, n) for n in names if floor_of_check(n.replace(".", "/")) > floor}
    assert wrong == set()


@pytest.mark.parametrize(
    "path, source, wrong",
    [
        ("ptxsim/jit/x.py", "from ptxsim.isa.address_map import RANK_SHIFT", []),
        ("ptxsim/jit/x.py", "def f():\n    from ptxsim.units import tma", ["ptxsim.units.tma"]),
        (
            "ptxsim/report/x.py",
            "import ptxsim.checks.diagnosis.deadlock.explain",
            ["ptxsim.checks.diagnosis.deadlock.explain"],
        ),
        ("ptxsim/trace/x.py", "from ptxsim import launch", ["ptxsim.launch"]),
        ("ptxsim/launch.py", "from ptxsim.trace.schedule import Costs", []),
    ],
)
def test_the_rule_of_the_tower_sees_both_good_and_bad_imports(path, source, wrong):
    assert climbing(path, ast.parse(source)) == wrong


LISTENERS = ("checks", "trace", "timing")
STEPS = "timing/record.py"  # runs the main loop one instruction at a time


def test_listeners_know_a_cluster_by_its_view_alone():
    """The view, in events/views.py, is what listeners may read; the class itself belongs to the machine."""
    rooms = base("ptxsim") / "ptxsim"
    inside = {f.relative_to(rooms).as_posix(): f for room in LISTENERS for f in (rooms / room).rglob("*.py")}
    machine = {"ptxsim.machine.cluster", "ptxsim.machine.cluster.Cluster"}
    assert {name for name, file in inside.items() if machine & modules(tree_of(file))} == {STEPS}


def private(tree: ast.Module) -> set[str]:
    """What a file of another package imports from ptxsim other than its public interface."""
    names = [name.split(".") for name in modules(tree)]
    return {".".join(n) for n in names if n[0] == "ptxsim" and len(n) > 2 and n[1] not in PUBLIC}


def test_others_import_the_public_face_of_ptxsim_alone():
    found = {}
    for unit in MAY_IMPORT.keys() - {"ptxsim"}:
        for file in files(unit):
            if wrong := private(tree_of(file)):
                found[file.relative_to(ROOT).as_posix()] = sorted(wrong)
    assert found == {}


def test_tests_of_ptxsim_need_nothing_of_ours_but_ptxsim():
    found = {}
    for file in sorted((ROOT / "packages/ptxsim/tests").rglob("*.py")):
        if wrong := imported(tree_of(file)) & OURS - {"ptxsim", "tests"}:
            found[file.name] = sorted(wrong)
    assert found == {}


def test_the_rule_of_the_face_sees_both_good_and_bad_imports():
    assert private(ast.parse("from ptxsim import Finding\nfrom ptxsim.tracing import svg")) == set()
    assert private(ast.parse("from ptxsim.trace.drawing import svg")) == {"ptxsim.trace.drawing.svg"}


@pytest.mark.parametrize("package", ["ptxsim", "tirxlab", "instructor", "research", "tracks"])
def test_no_files_import_each_other_in_a_circle(package):
    TopologicalSorter(imports_inside(base(package) / package)).prepare()


def test_the_search_for_circles_finds_one(tmp_path):
    package = tmp_path / "ptxsim"
    package.mkdir()
    (package / "a.py").write_text("from ptxsim.b import f")
    (package / "b.py").write_text("def f():\n    import ptxsim.a")
    with pytest.raises(CycleError):
        TopologicalSorter(imports_inside(package)).prepare()


def test_instructor_is_imported_by_its_own_files_alone():
    """And by tests and tools: the students' handout has no `instructor`."""
    allowed = (
        "instructor/",
        "packages/tirxlab/tests/",
        "packages/tirxlab/bench/",
        "research/",
        "conftest.py",
    )
    importing = [
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob("[!.]*/**/*.py")
        if "instructor" in imported(tree_of(path))
    ]
    assert importing and [name for name in importing if not name.startswith(allowed)] == []


@pytest.mark.parametrize(
    "unit, path, source, wrong",
    [
        ("ptxsim", "ptxsim/x.py", "import numpy\nfrom ptxsim import isa", []),
        ("ptxsim", "ptxsim/x.py", "def f():\n    from tirxlab.artifact import Artifact", ["tirxlab"]),
        ("tirxlab", "tirxlab/devices/sim.py", "import ptxsim", []),
        ("tirxlab", "tirxlab/devices/sim.py", "import tvm.tirx", ["tvm"]),
        ("tirxlab", "tirxlab/dialect/ops.py", "import tvm.tirx", []),
        ("tirxlab", "tirxlab/artifact.py", "import utils", ["utils"]),
        ("tirxlab", "tirxlab/steps.py", "import instructor", ["instructor"]),
        ("tirxlab", "tirxlab/steps.py", "from tirxlab.cli import app", ["tirxlab.cli"]),
        ("tirxlab.cli", "tirxlab/cli/x.py", "from tirxlab.cli import app", []),
        ("tirxlab.cli", "tirxlab/cli/x.py", "import instructor.autograder", ["instructor"]),
    ],
)
def test_the_rule_sees_both_good_and_bad_imports(unit, path, source, wrong):
    assert violations(unit, path, ast.parse(source)) == wrong


PROVIDES = {
    "apache_tvm": "tvm",
    "pyelftools": "elftools",
    "cuda_bindings": "cuda",
    "markdown_it_py": "markdown_it",
    "ml_dtypes": "ml_dtypes",
}  # package: what one imports
OPTIONAL = {
    "distributed",
    "typst",
    "torch",
    "triton",
    "cutlass",
    "tilelang",
    "modal",
    "jax",
    "jax_tvm_ffi",
}  # extras: only ever imported inside functions or under a guard
WITH_OTHERS = {
    "tvm_ffi": "tvm",
    "llvmlite": "numba",
    "pip": "venv",
    "nvidia": "cuda",
}  # come with what is declared


def declared() -> set[str]:
    """What may be imported on a machine that has the declared dependencies and no extra."""
    names = {re.split(r"[^A-Za-z0-9_-]", line)[0].replace("-", "_") for line in requirements()}
    return {PROVIDES.get(name, name) for name in names} | set(WITH_OTHERS) | OPTIONAL | OURS


def test_every_import_is_declared_in_pyproject():
    known = declared() | set(sys.stdlib_module_names) | {"tomllib"}  # which Python 3.10 lacks
    every = {file for unit in (*MAY_IMPORT, "tests") for file in files(unit)}
    found = {str(file.relative_to(ROOT)): sorted(imported(tree_of(file)) - known) for file in sorted(every)}
    assert {name: missing for name, missing in found.items() if missing} == {}


def test_every_exemption_is_needed():
    """No exemption is for a name that nothing imports, or for a room or file that is gone."""
    every = [file for unit in (*MAY_IMPORT, "tests") for file in files(unit)]
    unused = {*PROVIDES.values(), *WITH_OTHERS, *OPTIONAL}.difference(*(imported(tree_of(f)) for f in every))
    named = [base("ptxsim") / "ptxsim" / room for room in ROOMS] + [base("ptxsim") / file for file in FACE]
    named += [base(path.partition("/")[0]) / path for path in (*MAY_IMPORT_TVM, *APART)]
    assert (sorted(unused), [str(path) for path in named if not path.exists()]) == ([], [])


def test_no_neighbour_of_a_script_shadows_the_standard_library():
    """`python instructor/figures/findings.py` puts that folder first: a numbers.py there breaks numpy."""
    files = [path for top in ("instructor", "research") for path in (ROOT / top).rglob("*.py")]
    scripts = {path.parent for path in files if '__name__ == "__main__"' in path.read_text(encoding="utf-8")}
    shadows = [path for path in files if path.parent in scripts and path.stem in sys.stdlib_module_names]
    assert shadows == []
