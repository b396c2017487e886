"""CRDs and samples of other projects, taken from pinned module archives when tests need them."""
