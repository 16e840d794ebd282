"""Random chains of updates on degenerate data: `traceless.path.stress`."""
