"""Pages for the people of a tenant, at /app/: views only. What they do goes through the same verbs as the API."""
