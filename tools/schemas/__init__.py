"""Writes the JSON Schema of policies and assets from the tables, for editors.

What the parser accepts is valid, other letter case and the aliases included: those are deprecated.
What only the parser can see (bounds, references, contradictions) is left to it.
"""
