"""One handler for each shape of field: it compiles, reads, checks and fills the field."""
