"""The catalog: the snapshot of all documents that decisions use, and the plans compiled from it."""
