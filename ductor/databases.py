"""Which database a process uses, and as whom. No Django here: the settings import this.

Three sources, the first that speaks wins: `DUCTOR_DATABASE_URL_<ROLE>`; `DATABASE_URL`, whose login is replaced by the
role's own (password from `DUCTOR_PASSWORD_<ROLE>` or from roles.json, which `init-db` writes); else the embedded server
under `DUCTOR_HOME`, where roles need no password.
"""

import atexit
import contextlib
import json
import os
import secrets
import signal
import sys
from pathlib import Path
from typing import Any

import environ

from ductor.embedded import EmbeddedServer

ROLES = ("web", "worker", "operator", "owner")
DATABASE_NAME = "ductor"
POOL_ROLES = frozenset({"web", "operator"})
CONNECT_SECONDS = 3

_server: EmbeddedServer | None = None


class DatabaseUnclear(Exception):
    """The environment does not say which database to use; the message is one line."""


def home() -> Path:
    """Return the folder of all that Ductor keeps on this machine: `DUCTOR_HOME`, else .ductor beside manage.py."""
    named = os.environ.get("DUCTOR_HOME")
    return Path(named).expanduser().absolute() if named else Path(__file__).resolve().parent.parent / ".ductor"


def uses_embedded() -> bool:
    """Say whether no server is named, so that Ductor runs its own."""
    named = [os.environ.get("DATABASE_URL"), *(os.environ.get(f"DUCTOR_DATABASE_URL_{role.upper()}") for role in ROLES)]
    return not any(named)


def embedded_server() -> EmbeddedServer:
    """Return this process's handle on the embedded server."""
    global _server
    if _server is None or _server.home != home():
        _server = EmbeddedServer(home())
    return _server


def connection_settings(role: str) -> dict[str, Any]:
    """Return Django's DATABASES entry for a role (web, worker, operator, owner, or a test role), without ENGINE.

    Raises:
        DatabaseUnclear: a URL can't be read, or this role has no login where the others have.
    """
    entry = {**_login(role), "CONN_HEALTH_CHECKS": role not in POOL_ROLES}
    entry["CONN_MAX_AGE"] = 0 if role in POOL_ROLES else None
    # Values bound by the server: never inlined into a statement's text, which other sessions of the role can read.
    options = {
        "server_side_binding": True,
        "connect_timeout": CONNECT_SECONDS,
        "application_name": f"ductor-{role}",
        **entry.get("OPTIONS", {}),
    }
    if role in POOL_ROLES:
        options["pool"] = {"min_size": 1, "max_size": 16, "timeout": CONNECT_SECONDS}
    return {**entry, "OPTIONS": options}


def login_settings(url: str) -> dict[str, Any]:
    """Return NAME, USER, PASSWORD, HOST, PORT and OPTIONS of a PostgreSQL URL.

    Raises:
        DatabaseUnclear: it isn't one.
    """
    if not url.startswith(("postgres://", "postgresql://", "psql://", "pgsql://")):
        raise DatabaseUnclear("the database URL must start with postgresql:// (DATABASE_URL, DUCTOR_DATABASE_URL_*)")
    try:
        parsed = environ.Env.db_url_config(url)
    except ValueError:
        # The URL holds a password: neither it nor the parser's message may be repeated.
        raise DatabaseUnclear(
            "the database URL can't be read: check its port and the escaping of its password"
        ) from None
    parsed.pop("ENGINE", None)
    if not parsed.get("NAME"):
        raise DatabaseUnclear("the database URL names no database: postgresql://user:password@host:5432/ductor")
    return {**parsed, "OPTIONS": parsed.get("OPTIONS", {})}


def psycopg_parameters(settings: dict[str, Any]) -> dict[str, Any]:
    """Turn a DATABASES entry into arguments of psycopg.connect()."""
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    parameters = {names[key]: value for key, value in settings.items() if key in names and value not in ("", None)}
    options = {
        key: value for key, value in settings.get("OPTIONS", {}).items() if key not in ("pool", "server_side_binding")
    }
    return {"connect_timeout": CONNECT_SECONDS, **options, **parameters}


def _login(role: str) -> dict[str, Any]:
    own = os.environ.get(f"DUCTOR_DATABASE_URL_{role.upper()}")
    if own:
        return login_settings(own)
    shared = os.environ.get("DATABASE_URL")
    if shared:
        return as_role(login_settings(shared), role)
    if not uses_embedded():
        raise DatabaseUnclear(f"set DUCTOR_DATABASE_URL_{role.upper()} or DATABASE_URL: other roles have a login")
    return {
        "NAME": DATABASE_NAME,
        "USER": f"ductor_{role}",
        "PASSWORD": "",
        "HOST": str(embedded_server().socket_dir),
        "PORT": "",
        "OPTIONS": {},
    }


def as_role(login: dict[str, Any], role: str) -> dict[str, Any]:
    """Replace a login by the role's own, where its password is known; else return the login as it is."""
    name = f"ductor_{role}"
    password = os.environ.get(f"DUCTOR_PASSWORD_{role.upper()}") or stored_passwords(login).get(name)
    return {**login, "USER": name, "PASSWORD": password} if password else login


def refuse_other_login(role: str) -> None:
    """Refuse to act as the login of the shared URL in a role whose password is not known here.

    That login may be a superuser, whom row security does not bind and whose objects ductor_owner can't change. A URL
    of the role's own may name whom it likes.

    Raises:
        DatabaseUnclear: it would come to that.
    """
    own = os.environ.get(f"DUCTOR_DATABASE_URL_{role.upper()}")
    if not own and os.environ.get("DATABASE_URL") and _login(role).get("USER") != f"ductor_{role}":
        raise DatabaseUnclear(
            f"this machine does not know the password of ductor_{role}: run `manage.py ductor init-db`, copy "
            f"roles.json from the machine that ran it, or set DUCTOR_PASSWORD_{role.upper()}"
        )


def server_key(login: dict[str, Any]) -> str:
    """Return the key of a server in roles.json: roles belong to a server, not to one of its databases."""
    host = login.get("HOST") or login.get("OPTIONS", {}).get("host") or "localhost"
    return f"{host}:{login.get('PORT') or 5432}"


def stored_passwords(login: dict[str, Any]) -> dict[str, str]:
    """Return role name → password as kept on this machine for a server."""
    found = _read_roles().get(server_key(login), {})
    return found if isinstance(found, dict) else {}


def store_passwords(login: dict[str, Any], passwords: dict[str, str]) -> None:
    """Keep role passwords for a server in roles.json (0600)."""
    write_private(home() / "roles.json", json.dumps({**_read_roles(), server_key(login): passwords}, indent=2))


def _read_roles() -> dict[str, Any]:
    try:
        content = json.loads((home() / "roles.json").read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DatabaseUnclear(f"{home() / 'roles.json'} can't be read: repair or remove it") from error
    return content if isinstance(content, dict) else {}


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user may read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(fresh, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as handle:
        handle.write(text)
    fresh.replace(path)


def secret_key(role: str) -> str:
    """Return the SECRET_KEY of the role's surface: the operator surface has one of its own.

    From `DUCTOR_OPERATOR_SECRET_KEY` or `DUCTOR_SECRET_KEY`; else a random one, made once and kept under home().

    Raises:
        DatabaseUnclear: both surfaces are given the same, so that what one signs the other would take.
    """
    surface = "operator" if role == "operator" else "tenant"
    given = [os.environ.get(variable) for variable in ("DUCTOR_SECRET_KEY", "DUCTOR_OPERATOR_SECRET_KEY")]
    if given[0] and given[0] == given[1]:
        raise DatabaseUnclear(
            "DUCTOR_SECRET_KEY and DUCTOR_OPERATOR_SECRET_KEY are the same: each surface needs its own"
        )
    name = "DUCTOR_OPERATOR_SECRET_KEY" if surface == "operator" else "DUCTOR_SECRET_KEY"
    if value := os.environ.get(name):
        return value
    path = home() / f"{surface}.secret"
    with contextlib.suppress(OSError):
        if len(kept := path.read_text()) >= 50:
            return kept
    return _make_secret(path)


def _make_secret(path: Path) -> str:
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    write_private(fresh, secrets.token_urlsafe(48))
    try:
        # A link succeeds for one process only: two that start at once share the winner's key.
        os.link(fresh, path)
    except FileExistsError:
        if len(path.read_text()) < 50:
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return path.read_text()


def ensure_server() -> None:
    """Have the embedded server running until this process ends; nothing to do where a server is named.

    Fresh data get their roles and tables at once, so that every command works on a fresh machine.

    Raises:
        ServerFailed, InitFailed: it can't be had; the message is one line.
    """
    if not uses_embedded():
        return
    server = embedded_server()
    server.acquire(_say)
    atexit.register(server.release)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # The default ends the process without its exit functions, and the server would stay behind.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not server.prepared.exists():
        from ductor.init_db import initialise

        initialise(progress=_say)


def _say(text: str) -> None:
    print(f"ductor: {text}", file=sys.stderr, flush=True)
