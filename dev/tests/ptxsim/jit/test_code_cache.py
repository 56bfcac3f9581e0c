"""What is made once of the sources is made again when it is damaged, or of something else."""

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


def test_the_numbers_on_disk_are_those_of_the_table():
    assert hot_numbers() == {op.key: FIRST_SCALAR + i for i, op in enumerate(hot_operations())}
