"""Fields of GPUs: counts, fractions, memory, MIG profiles, totals."""
