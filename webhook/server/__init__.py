"""The webhook: HTTP, workers, reloading."""
