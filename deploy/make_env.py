"""Fill the files of deploy/env with the passwords of `init-db` and fresh secrets, and list PgBouncer's users.

Usage: python3 deploy/make_env.py <roles.json> <host:port/database?options> <folder>

Standard library only. The files are readable by their maker alone; values in capitals that are left need a person.
"""

import json
import os
import secrets
import sys
from pathlib import Path
from urllib.parse import quote

TEMPLATES = Path(__file__).resolve().parent / "env"
PLACE = "db.example.com:5432/ductor?sslmode=verify-full&sslrootcert=system"
ROLES = ("web", "operator", "worker", "owner")
SECRETS = ("WEB_SECRET_KEY", "OPERATOR_SECRET_KEY", "WORKER_SECRET_KEY", "METRICS_TOKEN")


def main(arguments: list[str]) -> int:
    """Write the files; 1 where one of them is there already or the server is unknown, 2 for wrong usage."""
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    roles, place, folder = Path(arguments[0]), arguments[1], Path(arguments[2])
    server = place.partition("/")[0]
    passwords = json.loads(roles.read_text()).get(server)
    if passwords is None:
        print(f"{roles} knows no server {server}", file=sys.stderr)
        return 1
    values = {f"{role.upper()}_PASSWORD": quote(passwords[f"ductor_{role}"], safe="") for role in ROLES}
    values |= {name: secrets.token_urlsafe(48) for name in SECRETS}
    # What PgBouncer asks its clients with; the owner goes past it.
    texts = {"userlist.txt": "".join(f'"ductor_{role}" "{passwords[f"ductor_{role}"]}"\n' for role in ROLES[:3])}
    texts |= {path.name: path.read_text().replace(PLACE, place) for path in sorted(TEMPLATES.glob("*.env"))}
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for filename, text in texts.items():
        for name, value in values.items():
            # As a whole value or as a URL's password: variables have such names, too.
            text = text.replace(f"={name}\n", f"={value}\n").replace(f":{name}@", f":{value}@")
        try:
            with open(folder / filename, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(text)
        except FileExistsError:
            print(f"{folder / filename} is there already and was left as it is", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
