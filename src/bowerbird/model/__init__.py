"""What do we call things? Snapshot, Bid, outcomes, errors, clock; no I/O."""
