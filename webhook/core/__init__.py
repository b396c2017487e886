"""The decision: no I/O, no clock, no environment, no logging, no threads."""
