"""What is durable? URL records, links, page versions, the WARC archive."""
