"""How good is the repository for its searchers? Q, score-rank curves, the gain of one refresh; pure functions."""
