"""One test for every row of the conformance list of resource interfaces, each carrying its id."""
