"""Who runs the circle? The live loop: coordinator, workers, recovery."""
