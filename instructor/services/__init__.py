"""Scripts that an autograding service calls; `./lab package` puts them beside the lab."""
