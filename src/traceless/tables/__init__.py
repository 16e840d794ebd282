"""Tables: files and streams of rows, read in batches, as a declared schema says."""
