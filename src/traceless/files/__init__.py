"""Files: one container of bytes, and what may be written into it."""
