"""Files derived from the sources are rebuilt if they are damaged or derived from something else."""

import ast
import sys
from pathlib import Path

import pytest

from ptxsim.jit import code_cache
from ptxsim.jit.bytecode import FIRST_SCALAR
from ptxsim.jit.codegen import hot_numbers, hot_operations


def test_what_was_made_is_remembered_until_it_is_damaged(monkeypatch, tmp_path):
    monkeypatch.setattr(code_cache, "cache_directory", lambda: tmp_path)
    made = []

    def make():
        made.append(1)
        return {"a": 1}

    def ask(key="", sources=("isa/scalar/*.py",)):
        return code_cache.remembered("numbers", sources, make, key)

    assert ask() == ask() == {"a": 1} and len(made) == 1
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text()[:3])
    assert ask() == {"a": 1} and len(made) == 2
    ask(key="another")
    ask(sources=("isa/*.py",))
    assert len(made) == 4 and len(list(tmp_path.iterdir())) == 3


def test_a_cache_that_cannot_be_written_to_is_no_error(monkeypatch, tmp_path):
    """As in a container whose image contains the compiled code, on a read-only disk."""
    monkeypatch.setattr(code_cache, "cache_directory", lambda: tmp_path / "missing")
    monkeypatch.setattr(code_cache, "_temporary", lambda: tmp_path)
    assert code_cache.remembered("numbers", (), lambda: [1]) == [1]
    assert code_cache.import_generated("value = 7").value == 7


def test_a_cache_that_cannot_be_made_is_named_when_the_simulator_compiles(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setattr(code_cache, "_temporary", lambda: tmp_path)
    monkeypatch.setenv("PTXSIM_CACHE", str(tmp_path / "file" / "cache"))
    told = f"each time: {tmp_path}/file/cache cannot be written (set PTXSIM_CACHE to another folder)"
    assert code_cache.first_run().endswith(told)
    monkeypatch.setenv("PTXSIM_CACHE", str(tmp_path / "cache"))
    assert code_cache.first_run().startswith(code_cache.FIRST_RUN)


def test_the_numbers_on_disk_are_those_of_the_table():
    assert hot_numbers() == {op.key: FIRST_SCALAR + i for i, op in enumerate(hot_operations())}


def test_whatever_generated_code_imports_is_in_its_hash():
    """Otherwise a change of that file would leave the old compiled code in use."""
    package = Path(code_cache.__file__).parents[1]
    hashed = {path for pattern in code_cache._SOURCES for path in package.glob(pattern)}
    todo, seen = [package / "jit" / "loop_template.py"], set()
    while todo:
        path = todo.pop()
        if path in seen or not path.exists() or path.is_relative_to(package / "frontend"):
            continue  # from the front end, only the class of an immediate
        seen.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("ptxsim."):
                base = package.parent.joinpath(*node.module.split("."))
                todo += [base.with_suffix(".py"), *(base / f"{alias.name}.py" for alias in node.names)]
    assert len(seen) > 10 and seen <= hashed


def test_a_long_compilation_is_announced_until_its_code_is_kept(tmp_path, monkeypatch, capsys):
    """The source file alone does not count: a first run that was interrupted compiles again."""
    monkeypatch.setattr(code_cache, "cache_directory", lambda: tmp_path)

    def said(slow: bool = True) -> str:
        module = code_cache.import_generated("answer = 41\n", slow=slow)
        del sys.modules[module.__name__]
        return capsys.readouterr().err

    assert said() == said() == code_cache.FIRST_RUN + "\n" and said(slow=False) == ""
    (source,) = tmp_path.glob("*.py")
    (tmp_path / f"{source.stem}.run_1.code").write_text("")
    assert said() == ""


def test_a_module_whose_compilation_was_cut_short_is_made_again(monkeypatch, tmp_path):
    monkeypatch.setenv("PTXSIM_CACHE", str(tmp_path))
    text = f"open({str(tmp_path / 'there')!r}).close()\nanswer = 7\n"
    with pytest.raises(FileNotFoundError):
        code_cache.import_generated(text)
    (tmp_path / "there").touch()
    assert code_cache.import_generated(text).answer == 7
