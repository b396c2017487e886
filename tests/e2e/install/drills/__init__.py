"""What happens to an installed release while people go on working: each event with its figures."""
