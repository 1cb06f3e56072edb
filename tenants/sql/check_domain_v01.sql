-- Say whether a host name may be used with a tenant's credential: true unless the name is another tenant's domain.
create or replace function tenants_check_domain(p_tenant_id uuid, p_host text) returns boolean
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
  select not exists (select from tenants_domain d where d.domain = p_host and d.tenant_id <> p_tenant_id)
$$;
