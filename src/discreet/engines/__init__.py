"""Where the data are: engines take {table: source}, never a policy."""
