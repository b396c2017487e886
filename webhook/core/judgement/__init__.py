"""The steps of one judgement, a module each, in the order in which `decide` takes them."""
