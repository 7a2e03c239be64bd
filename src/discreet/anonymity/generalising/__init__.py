"""Making values coarser until every class is large and diverse enough."""
