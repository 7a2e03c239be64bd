"""SQL front end: parse, resolve, bind expressions, keep ownership, aggregate. See `passes`."""
