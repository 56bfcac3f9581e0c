"""Instructor side: reference kernels, grading, exploits. Absent from the students' handout."""
