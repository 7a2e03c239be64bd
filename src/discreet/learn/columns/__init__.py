"""What columns look like and how they go together: scaling, components, clusters, linear regression."""
