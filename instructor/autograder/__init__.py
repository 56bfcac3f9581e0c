"""Grading: a kernels file that nobody has read -> points per step, with one hint for each lost part.

plan.py        which runs a step gets: sizes, data, orders, seeds
judge.py       one run, in a process that may be killed: right? free of errors? what did it do?
behaviour.py   is it implemented as the step demands? from the simulator's record, never from source text
ptx_rules.py   what no kernel of this course may read or keep
grading.py     one submission: build, run, points
points.py      what all of that earns
speed.py       is a step fast enough on the GPU? of artifacts alone
batch.py       a class: here or on Dask, resumable; apart.py: each submission in a process of its own
class_speed.py the speed of a graded class, on the GPU of this machine or through cloud.py
reader.py      our functions on students' bytes, in a confined child: opening.py (tars), prints.py (likeness)
similar.py     which submissions read alike
"""
