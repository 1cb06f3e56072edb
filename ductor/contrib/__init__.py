"""Other libraries' ways to start work, served by Ductor's queue."""
