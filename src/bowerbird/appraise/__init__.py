"""What is a fetch worth? Pure functions from a Snapshot to bids."""
