"""The groups of `manage.py ductor`: each module holds one typer app; verbs and reads do the work.

Every command takes `--json` (one document on stdout) and ends with 0 done, 1 error, 2 wrong usage, 3 refused,
4 not found. Errors are one line on stderr.
"""
