"""The table of the rounds of predictions takes another round and keeps the earlier ones."""

import shutil

from research.time import rounds


def test_a_round_is_added_to_the_compressed_table(tmp_path, monkeypatch):
    table = tmp_path / rounds.TABLE.name
    shutil.copy(rounds.TABLE, table)
    monkeypatch.setattr(rounds, "TABLE", table)
    before, number = rounds.rows(6), rounds.newest() + 1
    predicted = {"h200.toml": "none", "rows": [{"kernel": "one", "ms": 1.5, "clock_mhz": 1900}]}
    timed = {"gpu": "a GPU", "date": "a day", "method": "a method", "rows": [{"kernel": "one", "ms": 2.0}]}
    rounds.add(number, predicted, timed)
    assert rounds.rows(6) == before and rounds.newest() == number
    assert rounds.rows(number) == [rounds.Timed(number, "one", 1.5, 2.0, None)]
