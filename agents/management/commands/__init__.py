"""Commands that know the agents."""
