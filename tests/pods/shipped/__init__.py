"""Tables for the tests of the shipped definitions, a module for each family of kinds."""
