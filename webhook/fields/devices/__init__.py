"""Fields of devices: what claims, their configurations and ComputeDomains may ask for."""
