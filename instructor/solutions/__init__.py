"""Reference solutions, from which the students' files are generated."""
