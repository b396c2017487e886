"""Fields whose value is a list of items with keys."""
