"""The boundary over all models and tables, not over examples; an exemption that nothing needs fails too."""

import uuid

import pytest
from django.apps import apps

from tenants.db.grants import declared
from tenants.managers import TenantManager, TenantModel, TenantRow
from tests.builders import rows

# Tables that are not under row security, each with its reason.
EXEMPT_TABLES = {
    "tenants_tenant": "what tenant rows point to; granted to the operator only, the web knows its tenant from the key",
    "tenants_domain": "read by a DEFINER function before the tenant is known; granted to the operator only",
    "tenants_queue": "a platform's queue belongs to no tenant",
    "tenants_listener": "an idle worker belongs to no tenant",
    "workflows_cluster": "a cluster belongs to no tenant",
    "tenants_cache_web": "Django's cache; every key is led by the tenant or `system` (tenants.cache)",
    "tenants_cache_worker": "Django's cache; every key is led by the tenant or `system` (tenants.cache)",
    "tenants_cache_operator": "Django's cache; every key is led by the tenant or `system` (tenants.cache)",
    "django_migrations": "Django's own record of migrations",
    "django_content_type": "Django's own list of models",
    "people_person": "a person belongs to no tenant; what makes one act in a tenant is tenants_member",
    "account_emailaddress": "a person's verified addresses",
    "account_emailconfirmation": "a person's addresses under confirmation",
    "mfa_authenticator": "a person's second factors, sealed",
    "django_session": "a session belongs to a person; the tenant it chose is checked at every request",
    "auth_permission": "Django's own; nobody but the owner may touch it",
    "auth_group": "Django's own; nobody but the owner may touch it",
    "auth_group_permissions": "Django's own; nobody but the owner may touch it",
}
# Tables of libraries under row security all the same: their models and statements know no tenant (AdoptedTable).
ADOPTED_TABLES = {"django_q_ormq", "django_q_task", "django_q_schedule"}
EXEMPT_MODELS = {
    "tenants.Tenant",
    "tenants.Domain",
    "tenants.Queue",
    "tenants.Listener",
    "workflows.Cluster",
    "contenttypes.ContentType",
    "people.Person",
    "account.EmailAddress",
    "account.EmailConfirmation",
    "mfa.Authenticator",
    "sessions.Session",
    "auth.Permission",
    "auth.Group",
    "django_q.OrmQ",
    "django_q.Schedule",
    "django_q.Task",
    "django_q.Success",
    "django_q.Failure",
}
FLAGS = """
select relname, relrowsecurity and relforcerowsecurity from pg_class
where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'm', 'v', 'f')
"""


def tenant_tables() -> set[str]:
    return ADOPTED_TABLES | {model._meta.db_table for model in apps.get_models() if issubclass(model, TenantRow)}


def test_every_model_is_a_tenants_or_exempt() -> None:
    outside = {model._meta.label for model in apps.get_models() if not issubclass(model, TenantRow)}
    assert outside == EXEMPT_MODELS


def test_tenant_models_use_the_tenant_manager_everywhere() -> None:
    for model in apps.get_models():
        if issubclass(model, TenantRow):
            assert isinstance(model._default_manager, TenantManager), model
            assert isinstance(model._base_manager, TenantManager), model
            assert not model._meta.local_many_to_many, model


def test_every_table_is_under_forced_row_security_or_exempt() -> None:
    flags = dict(rows(FLAGS))
    assert {name for name, forced in flags.items() if not forced} == set(EXEMPT_TABLES)
    assert {name for name, forced in flags.items() if forced} == tenant_tables()


def test_every_tenant_column_is_not_null_and_leads_every_key() -> None:
    keys = rows(
        """
        select c.conrelid::regclass::text, c.conname, c.contype::text,
          (select attname from pg_attribute a where a.attrelid = c.conrelid and a.attnum = c.conkey[1])
        from pg_constraint c join pg_class t on t.oid = c.conrelid
        where t.relnamespace = 'public'::regnamespace and t.relforcerowsecurity and c.contype in ('p', 'u', 'f')
        """
    )
    assert {table for table, *_ in keys} == tenant_tables()
    assert [key for key in keys if key[3] != "tenant_id"] == []
    assert {table for table, _, kind, _ in keys if kind == "p"} == tenant_tables()
    nullable = rows(
        """
        select attrelid::regclass::text from pg_attribute a join pg_class t on t.oid = a.attrelid
        where t.relnamespace = 'public'::regnamespace and t.relkind = 'r' and attname = 'tenant_id' and not attnotnull
        """
    )
    assert nullable == []


def test_unique_indexes_lead_with_the_tenant() -> None:
    found = rows(
        """
        select i.indrelid::regclass::text, i.indexrelid::regclass::text,
          (select attname from pg_attribute a where a.attrelid = i.indrelid and a.attnum = i.indkey[0])
        from pg_index i join pg_class t on t.oid = i.indrelid
        where t.relnamespace = 'public'::regnamespace and t.relforcerowsecurity and i.indisunique
        """
    )
    assert [index for index in found if index[2] != "tenant_id"] == []


def test_foreign_keys_between_tenant_tables_carry_the_tenant() -> None:
    found = rows(
        """
        select c.conrelid::regclass::text, c.confrelid::regclass::text, cardinality(c.conkey),
          (select attname from pg_attribute a where a.attrelid = c.confrelid and a.attnum = c.confkey[1])
        from pg_constraint c join pg_class t on t.oid = c.confrelid
        where t.relnamespace = 'public'::regnamespace and t.relforcerowsecurity and c.contype = 'f'
        """
    )
    assert found == [("workflows_step", "workflows_task", 2, "tenant_id")]


def test_r16_each_role_has_one_permissive_policy_a_table_with_using_and_check() -> None:
    policies = rows(
        "select tablename, policyname, roles::text[], permissive, cmd, qual, with_check from pg_policies"
        " where schemaname = 'public' order by 1, 2"
    )
    by_table: dict[str, list] = {}
    for table, name, roles, permissive, command, qual, check in policies:
        by_table.setdefault(table, []).append((name, tuple(sorted(roles))))
        assert (permissive, command) == ("PERMISSIVE", "ALL")
        assert qual == check
        assert "public" not in roles
        if name == "tenant_rows":
            assert qual == "(tenant_id = (NULLIF(current_setting('ductor.tenant_id'::text, true), ''::text))::uuid)"
    expected = [
        ("engine_rows", ("ductor_engine",)),
        ("operator_rows", ("ductor_operator",)),
        ("owner_rows", ("ductor_owner",)),
        ("tenant_rows", ("ductor_web", "ductor_worker")),
    ]
    assert by_table == dict.fromkeys(tenant_tables(), expected)


def test_r26_grants_are_exactly_the_declared_ones() -> None:
    granted: dict[str, dict[str, set[str]]] = {}
    for table, role, privilege in rows(
        "select table_name, grantee, lower(privilege_type) from information_schema.role_table_grants"
        " where table_schema = 'public' and grantee not in ('ductor_owner', 'postgres')"
    ):
        granted.setdefault(table, {}).setdefault(role, set()).add(privilege)
    expected = {
        table: {role: {word.strip() for word in privileges.split(",")} for role, privileges in roles.items()}
        for table, roles in declared().tables.items()
    }
    assert granted == expected
    existing = {name for name, _ in rows(FLAGS)}
    assert set(expected) <= existing


def test_columns_and_sequences_grant_nothing_to_the_plain_roles() -> None:
    assert rows("select 1 from pg_attribute where attacl is not null and attrelid >= 16384") == []
    loose = rows(
        "select c.relname, a.grantee::regrole::text from pg_class c, aclexplode(c.relacl) a"
        " where c.relkind = 'S' and a.grantee::regrole::text not in ('ductor_owner', 'ductor_engine')"
    )
    assert loose == []


def test_r3_r13_r14_r21_no_views_no_leaks_and_the_plain_roles_own_nothing() -> None:
    views = "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('v', 'm')"
    assert rows(views) == []
    assert rows("select proname from pg_proc where proleakproof and pronamespace = 'public'::regnamespace") == []
    roles = rows(
        "select rolname, rolsuper or rolbypassrls or rolcreaterole or rolcreatedb from pg_roles"
        " where rolname in ('ductor_web', 'ductor_worker', 'ductor_operator', 'ductor_test') order by 1"
    )
    assert roles == [(name, False) for name in ("ductor_operator", "ductor_test", "ductor_web", "ductor_worker")]
    owned = rows(
        "select relname from pg_class where relowner::regrole::text in ('ductor_web', 'ductor_worker',"
        " 'ductor_operator', 'ductor_test', 'ductor_engine') and relnamespace = 'public'::regnamespace"
    )
    assert owned == []


def test_ids_are_made_here_and_never_by_a_sequence() -> None:
    for model in apps.get_models():
        if issubclass(model, TenantModel):
            assert model._meta.get_field("id").default().version == 7
    assert uuid.UUID(int=0).version is None


def test_mutant_a_table_without_force_is_found(request: pytest.FixtureRequest) -> None:
    """The proof itself is proven: take FORCE from one table and the walk must see it."""
    from tests.database import owner

    owner().execute("alter table workflows_task no force row level security")
    request.addfinalizer(lambda: owner().execute("alter table workflows_task force row level security"))
    with pytest.raises(AssertionError):
        test_every_table_is_under_forced_row_security_or_exempt()
