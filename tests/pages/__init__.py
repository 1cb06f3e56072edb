"""The tenant pages and the pages of signing in."""
