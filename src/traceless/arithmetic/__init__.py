"""Numbers that keep their bits: exact integers, elementary functions, double-double products."""
