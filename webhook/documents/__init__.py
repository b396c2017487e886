"""Documents as people write them: source lines, problems, reading into models."""
