"""Drafts the definition of a kind from its CRD."""
