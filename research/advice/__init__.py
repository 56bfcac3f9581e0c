"""Whether the first finding names the cause or leads astray, on mistakes that a machine makes."""
