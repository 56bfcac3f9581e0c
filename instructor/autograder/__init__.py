"""Grading: turns an untrusted kernels file into points per step, with one hint for each lost part.

plan.py        the runs of a step: sizes, data, orders, seeds
judge.py       one run, in a killable process: whether it is right and free of errors, and what it did
behaviour.py   whether a kernel does what its step demands: by the simulator's record, never by its text
ptx_rules.py   what no kernel of this course may read or keep
grading.py     one submission: build, run, points
points.py      the points that a step and a submission earn
speed.py       whether a step is fast enough on the GPU, which gets artifacts alone
batch.py       a class: here or on Dask, resumable; apart.py: each submission in a process of its own
class_speed.py the speed of a graded class, on the GPU of this machine or through cloud.py
reader.py      our functions on students' bytes, in a confined child: opening.py (tars), prints.py (likeness)
similar.py     pairs of submissions that are alike
"""
