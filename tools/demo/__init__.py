"""The demo that `make demo` runs, and what the demo on a cluster shares with it."""
