"""libjq in a confined process, for paths that are not native."""
