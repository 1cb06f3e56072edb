-- The tenants that a person is a member of, for choosing one after signing in: at most p_limit, by slug.
-- Never the system tenant: nobody acts as it, whatever rows somebody has planted.
create or replace function tenants_list_memberships(p_person_id uuid, p_limit int)
returns table (tenant_id uuid, slug varchar, name varchar, role varchar)
language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  return query
  select m.tenant_id, t.slug, t.name, m.role
  from tenants_member m join tenants_tenant t on t.id = m.tenant_id
  where m.person_id = p_person_id and t.status = 'active' and m.tenant_id <> '00000000-0000-7000-8000-000000000000'
  order by t.slug limit p_limit;
end $$;
