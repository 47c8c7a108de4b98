"""What is fetched now? Bid shapes, the auction under politeness, the price of a fetch."""
