"""What a visit to a hub, which announces new pages, is worth."""
