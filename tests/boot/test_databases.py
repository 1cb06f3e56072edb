"""Which database and which login a process gets."""

import json
import os
import stat
from pathlib import Path

import pytest

from ductor import bootstrap, databases
from ductor.databases import DatabaseUnclear, connection_settings

URL = "postgresql://app:s3cr%40t@db.example:6432/shop?sslmode=require"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for role in (*databases.ROLES, "test"):
        monkeypatch.delenv(f"DUCTOR_DATABASE_URL_{role.upper()}", raising=False)
        monkeypatch.delenv(f"DUCTOR_PASSWORD_{role.upper()}", raising=False)
    for name in ("DATABASE_URL", "DUCTOR_SECRET_KEY", "DUCTOR_OPERATOR_SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DUCTOR_HOME", str(tmp_path / "home"))


def test_without_a_url_each_role_uses_the_embedded_socket_and_starts_nothing(tmp_path: Path) -> None:
    settings = connection_settings("worker")

    assert settings["USER"] == "ductor_worker"
    assert settings["NAME"] == "ductor"
    assert settings["HOST"] == str(databases.embedded_server().socket_dir)
    assert databases.uses_embedded()
    assert not databases.embedded_server().is_running()
    assert not (tmp_path / "home" / "pg").exists()


def test_a_role_with_its_own_url_uses_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", URL)
    monkeypatch.setenv("DUCTOR_DATABASE_URL_WEB", "postgresql://web:w@other/shop2")

    assert connection_settings("web")["USER"] == "web"
    assert connection_settings("web")["HOST"] == "other"
    assert connection_settings("worker")["HOST"] == "db.example"
    assert not databases.uses_embedded()


def test_the_shared_login_is_replaced_by_the_roles_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", URL)
    before = connection_settings("web")
    databases.store_passwords(databases.login_settings(URL), {"ductor_web": "kept"})
    kept = connection_settings("web")
    monkeypatch.setenv("DUCTOR_PASSWORD_WEB", "named")
    named = connection_settings("web")

    assert (before["USER"], before["PASSWORD"]) == ("app", "s3cr@t")
    assert (kept["USER"], kept["PASSWORD"], kept["NAME"]) == ("ductor_web", "kept", "shop")
    assert (named["USER"], named["PASSWORD"]) == ("ductor_web", "named")
    assert kept["OPTIONS"]["sslmode"] == "require"


@pytest.mark.parametrize("role", ["web", "worker", "operator", "owner"])
def test_no_command_acts_as_the_shared_login(monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    databases.refuse_other_login(role)
    monkeypatch.setenv("DATABASE_URL", URL)
    with pytest.raises(DatabaseUnclear, match=f"password of ductor_{role}.*DUCTOR_PASSWORD_{role.upper()}") as refusal:
        databases.refuse_other_login(role)
    assert ("\n" in str(refusal.value), "s3cr" in str(refusal.value)) == (False, False)

    with monkeypatch.context() as own:
        own.setenv(f"DUCTOR_DATABASE_URL_{role.upper()}", "postgresql://member:m@other/shop2")
        databases.refuse_other_login(role)
    with monkeypatch.context() as named:
        named.setenv("DATABASE_URL", f"postgresql://ductor_{role}:p@other/shop2")
        databases.refuse_other_login(role)
    databases.store_passwords(databases.login_settings(URL), {f"ductor_{role}": "kept"})
    databases.refuse_other_login(role)


@pytest.mark.parametrize("line", ["ductor tenants list", "ductor doctor", "qcluster", "migrate"])
def test_a_command_that_would_is_one_line(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", URL)
    monkeypatch.setenv("DUCTOR_ROLE", bootstrap.role_for(line.split()))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    assert bootstrap.main(["manage.py", *line.split()]) == 1
    told = capsys.readouterr().err
    assert told.startswith("ductor: this machine does not know the password of ductor_")
    assert told.count("\n") == 1


def test_passwords_of_another_server_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    databases.store_passwords(databases.login_settings("postgresql://a:b@elsewhere/shop"), {"ductor_web": "kept"})
    monkeypatch.setenv("DATABASE_URL", URL)

    assert connection_settings("web")["USER"] == "app"


def test_surfaces_pool_their_connections_and_workers_keep_theirs() -> None:
    web, worker = connection_settings("web"), connection_settings("worker")

    assert web["OPTIONS"]["pool"] == {"min_size": 1, "max_size": 16, "timeout": 3}
    assert (web["CONN_MAX_AGE"], web["CONN_HEALTH_CHECKS"]) == (0, False)
    assert "pool" not in worker["OPTIONS"]
    assert (worker["CONN_MAX_AGE"], worker["CONN_HEALTH_CHECKS"]) == (None, True)
    assert worker["OPTIONS"]["connect_timeout"] == 3
    assert worker["OPTIONS"]["application_name"] == "ductor-worker"


@pytest.mark.parametrize(
    "url", ["mysql://a:geheim@h/d", "postgresql://a:geheim@h", "postgresql://a:geheim@h:port/d", "geheim"]
)
def test_an_unusable_url_is_one_line_without_the_password(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)

    with pytest.raises(DatabaseUnclear) as refusal:
        connection_settings("web")
    assert "geheim" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_role_without_a_login_beside_roles_that_have_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUCTOR_DATABASE_URL_WEB", URL)

    with pytest.raises(DatabaseUnclear, match="DUCTOR_DATABASE_URL_WORKER"):
        connection_settings("worker")


def test_psycopg_gets_the_same_login_without_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", URL)

    assert databases.psycopg_parameters(connection_settings("web")) == {
        "dbname": "shop",
        "user": "app",
        "password": "s3cr@t",
        "host": "db.example",
        "port": 6432,
        "sslmode": "require",
        "connect_timeout": 3,
        "application_name": "ductor-web",
    }


def test_each_surface_has_a_secret_of_its_own_that_stays() -> None:
    web, operator = databases.secret_key("web"), databases.secret_key("operator")

    assert web != operator
    assert min(len(web), len(operator)) >= 50
    assert databases.secret_key("worker") == web == databases.secret_key("web")
    assert databases.secret_key("operator") == operator


def test_secrets_from_the_environment_are_used_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DUCTOR_SECRET_KEY", "tenant-secret")
    monkeypatch.setenv("DUCTOR_OPERATOR_SECRET_KEY", "operator-secret")

    assert databases.secret_key("web") == "tenant-secret"
    assert databases.secret_key("operator") == "operator-secret"
    assert not (tmp_path / "home").exists()


def test_secrets_and_passwords_are_private_files(tmp_path: Path) -> None:
    databases.secret_key("web")
    databases.store_passwords(databases.login_settings(URL), {"ductor_web": "kept"})

    home = tmp_path / "home"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()} == {
        "tenant.secret": 0o600,
        "roles.json": 0o600,
    }
    assert json.loads((home / "roles.json").read_text()) == {"db.example:6432": {"ductor_web": "kept"}}
