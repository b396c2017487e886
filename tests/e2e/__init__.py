"""End-to-end tests: real API server, real controllers, real webhook."""
