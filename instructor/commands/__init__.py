"""The instructor's commands of `./lab`, one file each as in tirxlab/cli, which looks for them here."""

SUMMARIES = {  # what `./lab --help` says of each
    "skeleton": "generate gemm_kernels.py from the solutions",
    "grade": "grade one submission",
    "grade-all": "grade a folder of submissions",
    "package": "pack the autograder",
    "release": "write the students' handout",
    "hidden": "make, show or try the hidden sizes",
    "board": "write a leaderboard page",
    "figures": "draw the figures of docs and slides",
}
