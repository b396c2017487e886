"""Policies: the catalogue of fields, rule types, parsing, merging over scopes, checks."""
