"""Assemblers for projects that write pods in a form of their own."""
