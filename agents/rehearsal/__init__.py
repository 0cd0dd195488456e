"""The rehearsal: the whole way of a card on real parts, with a scripted model on loopback."""
