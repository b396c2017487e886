"""Scenes that people, controllers and operators play in a real cluster while reviews are recorded."""
