"""The agents: who does the cards. Imports `board`; `board` never imports this package."""
