"""Every command over everything there is, and over documents that are broken by a fixed seed."""
