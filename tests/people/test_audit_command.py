"""`ductor audit list`: the same read as the API and the pages, from the command line."""

import pytest

from tenants.identity import new_id
from tenants.keys import create_api_key
from tenants.principals import Principal
from tests import clock
from tests.builders import build_tenant, rows, start
from tests.commands.running import ductor
from tests.people.signing import join

LIST = ("audit", "list", "--tenant")


def test_acts_are_listed_newest_first_with_who_and_why() -> None:
    tenant = build_tenant("acme")
    _, person = join(tenant, "admin")
    create_api_key(tenant_id=tenant.id, name="ci", scopes=["tasks:read"], principal=person)
    ductor("tenants", "freeze", "acme", "--reason", "abuse 17")
    document = ductor(*LIST, "acme", "--json").document
    assert [one["act"] for one in document["acts"]] == ["tenant.freeze", "key.create", "policy.set", "tenant.create"]
    assert document["next_before"] is None
    frozen, made, *_ = document["acts"]
    assert (frozen["reason"], frozen["before"], frozen["principal"]["kind"]) == ("abuse 17", {"frozen": []}, "command")
    assert frozen["after"]["frozen"] != []
    assert made["principal"] == {"kind": "person", "id": person.id, "name": person.name, "behind": ""}
    assert made["who"] == f"person {person.name}"
    table = ductor(*LIST, "acme").out
    assert "abuse 17" in table
    assert table.index("tenant.freeze") < table.index("key.create")


def test_the_person_behind_a_key_is_shown() -> None:
    tenant = build_tenant("acme")
    member, person = join(tenant, "admin")
    view, _ = create_api_key(tenant_id=tenant.id, name="ci", scopes=["keys:write"], principal=person)
    by_key = Principal(kind="key", id=str(view.id), name="ci", scopes=frozenset(view.scopes), behind=member.email)
    create_api_key(tenant_id=tenant.id, name="child", scopes=["keys:write"], principal=by_key)
    [newest, *_] = ductor(*LIST, "acme", "--json").document["acts"]
    assert newest["who"] == f"key ci ({member.email})"


def test_filters_and_pages() -> None:
    tenant = build_tenant("acme")
    _, person = join(tenant, "admin")
    keys = [
        create_api_key(tenant_id=tenant.id, name=f"k{n}", scopes=["tasks:read"], principal=person) for n in range(3)
    ]
    ids = [str(view.id) for view, _ in keys]

    def targets(*options: str) -> list[str]:
        return [one["target_id"] for one in ductor(*LIST, "acme", *options, "--json").document["acts"]]

    assert targets("--act", "key.create") == targets("--kind", "key") == ids[::-1]
    assert targets("--kind", "key", "--target", ids[1]) == [ids[1]]
    first = ductor(*LIST, "acme", "--kind", "key", "--limit", "2", "--json").document
    assert [one["target_id"] for one in first["acts"]] == [ids[2], ids[1]]
    assert first["next_before"] == first["acts"][-1]["id"]
    assert targets("--kind", "key", "--limit", "2", "--before", first["next_before"]) == [ids[0]]
    assert targets("--since", "1h") == targets()
    assert targets("--until", "1h") == []
    moment = first["acts"][0]["at"]
    assert targets("--kind", "key", "--since", moment) == [ids[2]]
    assert targets("--kind", "key", "--until", moment) == [ids[1], ids[0]]


def test_another_tenant_s_acts_and_places_are_nothing() -> None:
    build_tenant("acme")
    build_tenant("other")
    [(foreign,)] = rows(
        "select a.id from tenants_act a join tenants_tenant t on t.id = a.tenant_id"
        " where t.slug = 'other' and act = 'policy.set'"
    )
    for place in (foreign, new_id()):
        assert ductor(*LIST, "acme", "--before", str(place), "--json").document["acts"] == []
    [(other,)] = rows("select id from tenants_tenant where slug = 'other'")
    assert str(other) not in ductor(*LIST, "acme").out


def test_the_platform_s_own_acts_stand_under_the_system() -> None:
    ductor("operators", "create", "ops@example.com")
    [one] = ductor(*LIST, "system", "--kind", "operator", "--json").document["acts"]
    assert (one["act"], one["after"]) == ("operator.create", {"email": "ops@example.com"})


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("nobody",), 4),
        (("acme", "--limit", "0"), 2),
        (("acme", "--limit", "1001"), 2),
        (("acme", "--since", "yesterday"), 2),
        (("acme", "--until", "2026-11-30T00:00:00"), 2),
        (("acme", "--since", "2026-13-30T00:00:00Z"), 2),
        (("acme", "--before", "x"), 4),
    ],
)
def test_what_can_t_be_read_is_one_line_and_an_exit_code(options: tuple[str, ...], code: int) -> None:
    build_tenant("acme")
    ran = ductor(*LIST, *options)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.count("\n") == 1


def test_times_are_the_database_s() -> None:
    tenant = build_tenant("acme")
    clock.freeze("2026-11-30 12:00+00")
    _, person = join(tenant, "admin")
    create_api_key(tenant_id=tenant.id, name="k", scopes=["tasks:read"], principal=person)
    [one] = ductor(*LIST, "acme", "--kind", "key", "--json").document["acts"]
    assert one["at"] == "2026-11-30T12:00:00Z"


def test_s19_who_of_the_platform_looked_at_a_task_s_payload_stands_in_its_audit() -> None:
    tenant = build_tenant("acme")
    [task_id] = start(tenant)
    ductor("tasks", "list", "--tenant", "acme")
    assert ductor(*LIST, "acme", "--act", "tenant.read", "--json").document["acts"] == []
    ductor("tasks", "show", str(task_id), "--tenant", "acme")
    [one] = ductor(*LIST, "acme", "--act", "tenant.read", "--json").document["acts"]
    assert (one["principal"]["kind"], one["target_kind"], one["target_id"]) == ("command", "page", f"task {task_id}")
    assert ductor("tasks", "show", str(new_id()), "--tenant", "acme").code == 4
    assert len(ductor(*LIST, "acme", "--act", "tenant.read", "--json").document["acts"]) == 1
