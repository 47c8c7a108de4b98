"""How does another program ask the brain? Tables of pages, links and clicks in; rankings and bids out."""
