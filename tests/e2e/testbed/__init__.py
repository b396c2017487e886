"""A real control plane for tests, built from package registries alone.

The rule of this place: the cluster is real or absent. Nothing here imitates an API server, and
whatever cannot be had says so as `missing.MissingTestbed`, with the way to get it.
"""
