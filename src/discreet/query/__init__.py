"""The SQL front end: from query text to the kernel's questions (see `passes`)."""
