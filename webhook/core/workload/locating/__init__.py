"""Finds the pods of an object: every place of a pod spec, with its metadata and roles."""
