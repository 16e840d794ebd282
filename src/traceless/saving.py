"""What estimators have in common that can be written to a file."""
