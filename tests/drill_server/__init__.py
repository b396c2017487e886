"""A hostile client on loopback, beside a steady stream of good reviews: `make drill-server`."""
