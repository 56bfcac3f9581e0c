"""Run the track's first kernel at all sizes: `python tracks/ampere/run.py --help`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tracks.ampere.reference import TRACK
from tracks.common import run_script

if __name__ == "__main__":
    run_script(TRACK)
