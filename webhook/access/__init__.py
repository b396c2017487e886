"""The interface library: components of one object, read and written through its definition."""
