"""One foreign thing each: files, HTTP, TLS, telemetry; no adapter imports another."""
