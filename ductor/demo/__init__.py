"""The demo job: an audit of the Python source files of this machine (`workflows.file_audit`)."""
