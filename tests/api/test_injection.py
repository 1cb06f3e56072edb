"""R19: whatever is put wherever a request has room for text, it is a value: no statement is made of it."""

import json
import os
import re
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection

from tenants.db.guard import tenant_tables
from tenants.permissions import SCOPES
from tests.api.callers import ORDER, Caller, build_caller, client
from tests.api.places import COMMON_HEADERS, Call, Place, calls, places, put
from tests.api.workflows import REVIEW
from tests.architecture.sources import python_files
from tests.builders import rows

MARK = "zqx9"
PAYLOADS = [
    f"'{MARK}",
    f"{MARK}' or '1'='1",
    f"{MARK}'--",
    f'{MARK}"',
    f"{MARK}') union select hashed_key from tenants_apikey --",
    f"'; set ductor.tenant_id = 'THEIRS'; --{MARK}",
    f"'; set local role ductor_owner; --{MARK}",
    f"{MARK}' || pg_sleep(600)::text || '",
    f"{MARK}; select pg_sleep(600)",
    f"{MARK}\\'; drop table workflows_task; --",
    f"{MARK}\\",
    f"{MARK}\u2019 or \u20181\u2019=\u20181",
    f"{MARK}\uff07 or 1=1 --",
    f"{MARK}/**/or/**/1=1",
    f"{MARK}$$;$ductor$",
    f"{MARK}%s %(tenant_id)s {{0}} :1 $1",
    f"E'{MARK}\\x27'",
    "THEIRS",
]
SETTINGS = "select md5(string_agg(name || '=' || setting, ',' order by name)) || current_user from pg_settings"
CALLS = calls()
# All payloads in all places take minutes; without them each place gets two, and each payload many places.
FULL = os.environ.get("DUCTOR_TEST_FULL") == "1"


class Prober:
    """A tenant that sends payloads, another one that must not notice, and what both can be told by."""

    def __init__(self) -> None:
        self.mine, self.theirs = (build_caller(*SCOPES, max_outstanding=100_000) for _ in range(2))
        task = self.theirs.start(key="theirs").json()
        self.marks = [task["id"], str(self.theirs.tenant.id), self.theirs.tenant.slug]
        self.sent: list[str] = []
        connection.ensure_connection()
        self.settings = self._settings()
        self.rows = digests()

    def note(self, execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
        self.sent.append(str(sql))
        return execute(sql, params, many, context)

    def assert_same_settings(self) -> None:
        """Check that nothing of the session is set otherwise than it was."""
        assert self._settings() == self.settings

    def _settings(self) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(SETTINGS)
            return cursor.fetchone()

    def probe(self, call: Call, place: Place, payload: str) -> None:
        """Send one payload; check the answer, the statements, the session's settings and every row."""
        payload = payload.replace("THEIRS", self.marks[1])
        request = self._request(call, place, payload)
        before = self.rows if request["kept"] else digests()
        self.sent.clear()
        answer = send(self.mine, call.method, request)
        where = (call.operation.id, place, payload)
        assert answer.status_code < 500, (where, answer.content)
        assert [sql for sql in self.sent if MARK in sql or (self.marks[1] in sql and "SET LOCAL" in sql)] == [], where
        shown = answer.content.decode()
        assert [mark for mark in self.marks if mark in shown and mark not in payload] == [], where
        after = self.rows = digests()
        assert foreign(after, self.mine) == foreign(before, self.mine), where
        if call.method == "GET" or answer.status_code >= 400:
            assert after == before, where

    def _request(self, call: Call, place: Place, payload: str) -> dict[str, Any]:
        made = re.findall(r":(?:task_id|key_id)>", call.path) and place.kind != "path"
        path = re.sub(r"<\w+:(\w+)>", lambda found: self._value(found[1], place, payload), call.path)
        query, headers = "", {"Authorization": f"Bearer {self.mine.key}", "Content-Type": "application/json"}
        if "If-Match" in {one.name for one in call.operation.parameters}:
            headers["If-Match"] = "*"
        body: Any = None if call.operation.body is None else example(call.operation.body.example)
        if place.kind == "query":
            query = f"?{place.name}={quote(payload, safe='')}"
        elif place.kind == "query name":
            query = f"?{quote(payload, safe='')}=1"
        elif place.kind == "header":
            headers[place.name] = payload
        elif place.kind == "body":
            body = put(body, place.pointer, payload)
        elif place.kind == "member name":
            body = {**body, payload: 1}
        elif place.kind == "whole body":
            body = payload
        return {"path": path + query, "headers": headers, "body": body, "kept": not made}

    def _value(self, name: str, place: Place, payload: str) -> str:
        if place.kind == "path" and place.name == name:
            return quote(payload, safe="")
        if name == "task_id":
            return str(self.mine.start().json()["id"])
        if name == "key_id":
            made = self.mine.post("/api/v1/keys", {"name": "probe", "scopes": ["tasks:read"]})
            return str(made.json()["id"])
        assert name == "name", f"say what a {name} of one's own is"
        return REVIEW


def example(body: Any) -> Any:
    """Return a documented body with the workflow that the tests have."""
    if isinstance(body, list):
        return [example(item) for item in body]
    if not isinstance(body, dict):
        return body
    lawful = {"workflow": REVIEW, "input": ORDER}
    return {name: lawful[name] if name in lawful else example(value) for name, value in body.items() if name != "key"}


def send(caller: Caller, method: str, request: dict[str, Any]) -> Any:
    """Send a request as a server hands it over: a header's text is read as Latin-1."""
    headers = {name: text.encode().decode("latin-1") for name, text in request["headers"].items()}
    host = headers.pop("Host", "localhost")
    raw = b"" if request["body"] is None else json.dumps(request["body"]).encode()
    kind = headers.pop("Content-Type")
    return client(headers=headers).generic(method, request["path"], raw, content_type=kind, HTTP_HOST=host)


def digests() -> dict[tuple[str, Any], str]:
    """Return a hash over the rows of every tenant in every tenant table, and over the tenants themselves."""
    parts = [
        f"select '{table}', tenant_id, md5(string_agg(t::text, '|' order by t::text)) from {table} t group by 2"
        for table in sorted(tenant_tables())
    ]
    parts.append("select 'tenants_tenant', id, md5(t::text) from tenants_tenant t")
    return {(table, tenant): digest for table, tenant, digest in rows(" union all ".join(parts))}


def foreign(found: dict[tuple[str, Any], str], mine: Caller) -> dict[tuple[str, Any], str]:
    """Return what belongs to others than the caller."""
    return {key: digest for key, digest in found.items() if key[1] != mine.tenant.id}


@pytest.mark.parametrize("operation", sorted(CALLS))
def test_r19_no_place_of_a_request_is_more_than_a_value(operation: str) -> None:
    call, prober = CALLS[operation], Prober()
    with connection.execute_wrapper(prober.note):
        for number, place in enumerate(places(call), sorted(CALLS).index(operation)):
            few = [PAYLOADS[number * 5 % len(PAYLOADS)], PAYLOADS[-number % len(PAYLOADS)]]
            for payload in PAYLOADS if FULL else few:
                prober.probe(call, place, payload)
            prober.assert_same_settings()


def test_every_header_that_the_api_reads_is_a_place() -> None:
    declared = {one.name for call in CALLS.values() for one in call.operation.parameters if one.place == "header"}
    read = set()
    for path in python_files("tenants", "workflows", "ductor"):
        text = path.read_text()
        read |= set(re.findall(r"headers(?:\.get\(|\[)\"([\w-]+)\"", text)) & _requests_only(text)
        read |= set(re.findall(r"single_header\(request, \"([\w-]+)\"", text))
    assert read - declared - set(COMMON_HEADERS) == set()


def _requests_only(text: str) -> set[str]:
    return set(re.findall(r"request\.headers(?:\.get\(|\[)\"([\w-]+)\"", text))


def test_a_call_has_the_places_of_its_route() -> None:
    found = {place.kind + " " + place.name for place in places(CALLS["startTasks"])}
    assert {"body items", "body items/0/workflow", "body items/0/key", "query surprise", "whole body "} <= found
    assert "path task_id" in {place.kind + " " + place.name for place in places(CALLS["cancelTask"])}
    assert len(CALLS) >= 10
