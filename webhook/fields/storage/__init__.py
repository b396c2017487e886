"""Fields of storage: volumes of each source with their mounts."""
