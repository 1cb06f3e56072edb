"""`ductor tenants`, `keys` and `queues`: what an operator sets up, from the command line."""

from collections.abc import Iterator

import pytest

from tenants.queries import TenantView
from tests.api.callers import Caller, assert_problem
from tests.builders import build_tenant, claim, rows, start
from tests.commands.running import ductor
from tests.database import owner
from workflows.faults import mark_fault
from workflows.states import State


def test_create_makes_a_tenant_with_the_default_policy() -> None:
    ran = ductor("tenants", "create", "acme", "--policy", "default", "--name", "Acme [red]", "--json")
    assert (ran.code, ran.err) == (0, "")
    made = ran.document
    assert (made["slug"], made["name"], made["service_class"]) == ("acme", "Acme [red]", "standard")
    assert (made["policy"]["max_outstanding"], made["policy"]["max_leases"]) == (1000, 20)
    assert rows("select slug from tenants_tenant where id = %s", made["id"]) == [("acme",)]
    assert "Acme [red]" in ductor("tenants", "list").out


def test_create_takes_both_limits_weight_and_class() -> None:
    limits = ("--max-outstanding", "7", "--max-leases", "3", "--weight", "4", "--service-class", "premium")
    policy = ductor("tenants", "create", "acme", *limits, "--json").document["policy"]
    assert (policy["max_outstanding"], policy["max_leases"], policy["weight"]) == (7, 3, 4)
    assert rows("select service_class from tenants_tenant where slug = 'acme'") == [("premium",)]


@pytest.mark.parametrize(
    "arguments",
    [
        ("acme",),
        ("acme", "--max-leases", "3"),
        ("acme", "--max-outstanding", "3"),
        ("acme", "--policy", "unlimited"),
        ("acme", "--max-outstanding", "0", "--max-leases", "1"),
        ("acme", "--max-outstanding", "many", "--max-leases", "1"),
        ("acme", "--policy", "default", "--weight", "-1"),
        ("acme", "--policy", "default", "--service-class", "system"),
        ("acme", "--policy", "default", "--service-class", "gold"),
        ("acme", "--policy", "default", "--name", "x" * 300),
        ("Acme", "--policy", "default"),
        ("a", "--policy", "default"),
        ("é" * 40 + "-one", "--policy", "default"),
        ("system", "--policy", "default"),
        ("", "--policy", "default"),
        ("acme", "--policy", "default", "--surprise"),
        (),
    ],
)
def test_create_refuses_wrong_usage_and_makes_nothing(arguments: tuple[str, ...]) -> None:
    ran = ductor("tenants", "create", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert rows("select count(*) from tenants_tenant") == [(1,)]


def test_a_slug_is_never_given_twice() -> None:
    ductor("tenants", "create", "acme", "--policy", "default")
    ran = ductor("tenants", "create", "acme", "--policy", "default")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error: slug_taken: ")
    assert rows("select count(*) from tenants_act where act = 'tenant.create'") == [(1,)]


def test_list_pages_by_slug() -> None:
    for slug in ("aa", "bb", "cc"):
        build_tenant(slug)
    page = ductor("tenants", "list", "--after", "aa", "--limit", "2", "--json").document
    assert [tenant["slug"] for tenant in page["tenants"]] == ["bb", "cc"]


def test_a_policy_is_shown_tried_and_set_with_a_reason() -> None:
    tenant = build_tenant("acme", max_outstanding=10, max_leases=2)
    shown = ductor("tenants", "policy", "acme", "--json").document
    assert (shown["max_outstanding"], shown["max_leases"], shown["outstanding"]) == (10, 2, 0)
    tried = ductor("tenants", "policy", "acme", "--max-leases", "5", "--dry-run", "--json").document
    assert (tried["now"]["max_leases"], tried["then"]["max_leases"], tried["then"]["max_outstanding"]) == (2, 5, 10)
    assert ductor("tenants", "policy", "acme", "--max-leases", "5").code == 2
    assert rows("select max_leases from tenants_load where tenant_id = %s", tenant.id) == [(2,)]
    ran = ductor("tenants", "policy", "acme", "--max-leases", "5", "--reason", "they grew", "--json")
    assert (ran.document["max_leases"], ran.document["max_outstanding"]) == (5, 10)
    acts = rows("select reason, principal ->> 'kind', after ->> 'max_leases' from tenants_act where act = 'policy.set'")
    assert acts[-1] == ("they grew", "command", "5")


def test_a_policy_out_of_bounds_and_a_tenant_that_is_not_there() -> None:
    build_tenant("acme", max_leases=2)
    assert ductor("tenants", "policy", "acme", "--guaranteed-leases", "9", "--reason", "x").code == 2
    ran = ductor("tenants", "policy", "nobody")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("error: not_found: ")


def test_a_frozen_tenant_is_refused_until_it_is_thawed() -> None:
    tenant = build_tenant("acme")
    assert ductor("tenants", "freeze", "acme", "--reason", "unpaid", "--json").document["frozen"] == [
        "admission",
        "claims",
    ]
    refused = ductor("tasks", "start", "faces-review", "--tenant", "acme", "--input", '{"order": 1}')
    assert (refused.code, refused.err.split(":")[1].strip()) == (3, "tenant_frozen")
    assert ductor("tenants", "freeze", "acme").code == 2
    assert ductor("tenants", "unfreeze", "acme", "--reason", "paid", "--json").document["frozen"] == []
    assert len(start(tenant)) == 1
    reasons = rows("select reason from tenants_act where act = 'tenant.freeze' order by at")
    assert reasons == [("unpaid",), ("paid",)]


def test_a_fault_is_lifted_with_a_reason() -> None:
    tenant = build_tenant("acme")
    start(tenant)
    mark_fault(tenant_id=tenant.id, queue="default", faulty=True)
    assert claim() == []
    assert ductor("tenants", "clear-fault", "acme", "--queue", "nowhere", "--reason", "x").code == 4
    assert claim() == []
    done = ductor("tenants", "clear-fault", "acme", "--reason", "row mended", "--json")
    assert done.document == {"slug": "acme", "queue": "default", "fault": False}
    assert len(claim()) == 1
    acts = rows("select target_kind, target_id, reason from tenants_act where act = 'turn.clear_fault'")
    assert acts == [("turn", "default", "row mended")]


def test_a_key_is_shown_once_opens_the_api_and_closes_when_revoked() -> None:
    tenant = build_tenant("acme")
    scopes = ("--scope", "tasks:read", "--scope", "tasks:write")
    made = ductor("keys", "create", "--tenant", "acme", *scopes, "--name", "ci", "--expires", "90d", "--json").document
    caller = Caller(tenant, made["key"])
    assert caller.start().status_code == 201
    listed = ductor("keys", "list", "--tenant", "acme", "--json")
    [key] = listed.document["keys"]
    assert (key["id"], key["name"], key["scopes"]) == (made["id"], "ci", ["tasks:read", "tasks:write"])
    assert made["key"].partition(".")[2] not in listed.out + ductor("keys", "list", "--tenant", "acme").out
    assert ductor("keys", "revoke", made["id"], "--tenant", "acme", "--reason", "left").code == 0
    assert_problem(caller.get(), 401, "unauthenticated")
    assert ductor("keys", "revoke", made["id"], "--tenant", "acme").code == 0
    acts = rows("select act, reason from tenants_act where target_kind = 'key' order by at")
    assert acts == [("key.create", ""), ("key.revoke", "left")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--scope", "tasks:everything"),
        (),
        ("--scope", "tasks:read", "--expires", "soon"),
        ("--scope", "tasks:read", "--expires", "2030-01-01T00:00:00"),
        ("--scope", "tasks:read", "--expires", "2030-13-01T00:00:00Z"),
        ("--scope", "tasks:read", "--expires", "-5d"),
        ("--scope", "tasks:read", "--expires", "2020-01-31T00:00:00Z"),
        ("--scope", "tasks:read", "--name", "two words"),
    ],
)
def test_keys_create_refuses_wrong_usage(arguments: tuple[str, ...]) -> None:
    build_tenant("acme")
    ran = ductor("keys", "create", "--tenant", "acme", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert rows("select count(*) from tenants_apikey") == [(0,)]


def test_another_tenant_s_key_id_and_a_made_up_one_are_one_answer() -> None:
    build_tenant("acme")
    build_tenant("globex")
    theirs = ductor("keys", "create", "--tenant", "globex", "--scope", "worker", "--json").document["id"]
    made_up = theirs[:-4] + ("0000" if not theirs.endswith("0000") else "1111")
    answers = [ductor("keys", "revoke", key_id, "--tenant", "acme") for key_id in (theirs, made_up)]
    assert answers[0] == answers[1]
    assert answers[0].code == 4
    assert ductor("keys", "revoke", "x", "--tenant", "acme").code == 4
    assert rows("select revoked_at from tenants_apikey") == [(None,)]


@pytest.fixture
def extra_queue() -> Iterator[str]:
    yield "reports"
    owner().execute("delete from tenants_queue where name = 'reports'; drop sequence if exists tenants_clock_reports")


def test_a_queue_is_made_once_with_its_clock(extra_queue: str) -> None:
    assert ductor("queues", "create", extra_queue, "--json").document["name"] == extra_queue
    again = ductor("queues", "create", extra_queue)
    assert (again.code, again.err.split(":")[1].strip()) == (3, "queue_taken")
    assert extra_queue in ductor("queues", "list").out
    names = [queue["name"] for queue in ductor("queues", "list", "--json").document["queues"]]
    assert names == sorted({"default", "system", extra_queue})
    tenant: TenantView = build_tenant("acme")
    start(tenant, queue=extra_queue)
    assert rows("select queue, state from workflows_task") == [(extra_queue, State.QUEUED)]


@pytest.mark.parametrize("name", ["", "With Blank", "UPPER", "1st", "x" * 49, 'a"; drop table x'])
def test_a_queue_s_name_follows_its_rule(name: str) -> None:
    assert ductor("queues", "create", name).code == 2
