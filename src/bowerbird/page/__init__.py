"""What do these bytes say? HTML, feeds and sitemaps as text, links and change."""
