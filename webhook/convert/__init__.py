"""Converts policies of other forms and generations."""
