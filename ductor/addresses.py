"""Where people reach the tenant surface. Only the standard library: `settings.py` and manage.py ask before Django."""

import os
import re

from ductor.cluster_settings import SettingInvalid, number_from

_BASE = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+", re.ASCII)


def base_url() -> str:
    """Return `DUCTOR_BASE_URL` without a slash at its end: what links in mails begin with.

    Without it, the tenant surface of this machine. Raises SettingInvalid where it is no address of a host.
    """
    named = os.environ.get("DUCTOR_BASE_URL", "").strip().rstrip("/")
    if not named:
        # Not 127.0.0.1: browsers keep passkeys for names of hosts only.
        return f"http://localhost:{number_from('DUCTOR_PORT', default=8000, least=1, most=65535)}"
    if not _BASE.fullmatch(named):
        raise SettingInvalid(f"DUCTOR_BASE_URL must be an address such as https://ductor.example.com, not {named!r}")
    return named
