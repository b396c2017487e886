"""Checks of one policy, and of several policies together."""
