"""Documents as their authors write them: source lines, problems, reading into models."""
