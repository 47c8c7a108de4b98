"""The URLFrontier 2.x interface over gRPC, with a crawl folder of ours behind each crawl."""
