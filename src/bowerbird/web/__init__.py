"""May we fetch it, and what came back? URLs, robots, addresses, HTTP."""
