"""What `./lab package` puts beside the lab for an autograding service: the scripts that the service calls."""
