"""A handler author's app for the cluster tests: handlers that work, hang, crash or kill their worker."""
