"""One budget: every kind of fetch bids in expected clicks, and one price clears."""
