"""What is left to move."""
