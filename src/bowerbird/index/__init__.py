"""What does search answer? The embedded full-text index."""
