"""The `./lab` command: one file per command, each with a function `run` that typer turns into a command line.

Exit status: 0 success, 1 a failing kernel or test, 2 bad input (one line on standard error says what to do).
Results go to standard output, progress and notes to standard error; `--json` prints one JSON object instead.
"""
