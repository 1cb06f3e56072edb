-- Look a person's membership up before any tenant is known: at most one row, none for a tenant that may not act, and
-- none for somebody who is no member (any more). The answer says, too, whether the tenant may be reached under the host.
-- Never the system tenant: nobody acts as it, whatever rows somebody has planted.
create or replace function tenants_find_membership(p_person_id uuid, p_tenant_id uuid, p_host text)
returns table (tenant_id uuid, slug varchar, service_class varchar, member_id uuid, email varchar, role varchar,
  host_allowed boolean)
language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  return query
  select m.tenant_id, t.slug, t.service_class, m.id, m.email, m.role, tenants_check_domain(m.tenant_id, p_host)
  from tenants_member m join tenants_tenant t on t.id = m.tenant_id
  where m.tenant_id = p_tenant_id and m.person_id = p_person_id and t.status = 'active'
    and m.tenant_id <> '00000000-0000-7000-8000-000000000000';
end $$;
