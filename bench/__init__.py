"""Ratios, measured in one run: what podgate costs beside decoding, a null handler, a null hook."""
