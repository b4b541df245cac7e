"""What may go wrong in production, done on purpose, with real processes."""
