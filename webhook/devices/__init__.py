"""Devices: claims, device classes and NVIDIA configurations, read, checked and counted.

Nothing here knows a policy field. Kubernetes objects are plain JSON of any served version.
"""
