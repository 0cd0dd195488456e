"""What an agent may do: allow, ask a person, or deny. Judges a call, never runs anything."""
