"""The pods of an object: definitions, locations, assembled pods, coverage."""
