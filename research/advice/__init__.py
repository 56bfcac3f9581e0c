"""Does the first finding name the cause, does it ever lead astray? Mistakes made by machine."""
