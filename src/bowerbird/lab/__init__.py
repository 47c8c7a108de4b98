"""Who runs the circle in virtual time? Worlds, replays, experiments."""
