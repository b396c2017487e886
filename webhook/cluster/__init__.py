"""The Kubernetes API: requests, watches, leases and events."""
