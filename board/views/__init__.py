"""Pages and fragments: each view fetches through `access`, calls one action, and answers."""
