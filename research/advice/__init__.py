"""Does the first finding name the cause, and does it ever send the wrong way? Protocol mistakes by machine."""
