"""JSON for programs: the same actions and the same access as the pages, under /api/v1."""
