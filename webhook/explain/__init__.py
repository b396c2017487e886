"""Where each value of a workload comes from, and which policies lost."""
