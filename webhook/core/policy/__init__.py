"""Policies: the tables of fields, rules and value types, their documents, and how scopes combine."""
