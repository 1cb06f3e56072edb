"""An app whose one workflow ends when the test lets it."""
