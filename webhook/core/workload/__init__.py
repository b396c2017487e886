"""Workloads: where the pods, replicas and fields of a kind are."""
