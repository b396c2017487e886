"""The chart and the kustomize folders, rendered, applied and used."""
