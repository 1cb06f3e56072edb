"""What a person does in a browser, from the mail to the last page, on real processes."""
