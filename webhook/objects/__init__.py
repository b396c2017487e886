"""JSON documents: paths in them, copies on write, differences, quantities."""
