#!/usr/bin/env python3
"""Ductor's one command. On a fresh machine it first makes .venv and installs what Ductor needs, then runs Django."""

import os
import sys

# Written so that any Python 3 can parse it: an old one gets one clear line instead of a syntax error.
if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.stderr.write(
        "Ductor needs Python 3.11, 3.12 or 3.13; this is Python %d.%d (%s). Run manage.py with one of those.\n"  # noqa: UP031
        % (sys.version_info[0], sys.version_info[1], sys.executable)
    )
    sys.exit(2)

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from ductor.bootstrap import main

    sys.exit(main(sys.argv))
