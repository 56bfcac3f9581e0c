"""Run the track's first kernel at all sizes: `python tracks/hopper/run.py --help`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tracks.common import run_script
from tracks.hopper.reference import TRACK

if __name__ == "__main__":
    run_script(TRACK)
