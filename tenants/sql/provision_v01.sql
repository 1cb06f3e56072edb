-- Make the row of a tenant; false where its slug is taken or was used before. The way in for the operator's role, which
-- has no right on the table itself. What a slug, a name and a class may be is checked by tenants.provisioning, its only
-- caller. Bound: one row.
create or replace function tenants_provision(p_tenant_id uuid, p_slug text, p_name text, p_service_class text)
returns boolean
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  perform tenants_require_scope(p_tenant_id);
  insert into tenants_tenant (id, slug, schema_name, name, status, service_class, created_at)
  values (p_tenant_id, p_slug, replace(p_slug, '-', '_'), p_name, 'active', p_service_class, ductor_now())
  on conflict do nothing;
  return found;
end $$;
