-- Look an invitation up by the digest of its token, before any tenant is known: at most one row. Unknown, used, revoked
-- and expired ones, and those of tenants that may not act, are alike.
-- Never the system tenant: nobody acts as it, whatever rows somebody has planted.
create or replace function tenants_find_invitation(p_hashed_token text)
returns table (tenant_id uuid, invitation_id uuid, slug varchar, name varchar, email varchar, role varchar,
  expires_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  return query
  select i.tenant_id, i.id, t.slug, t.name, i.email, i.role, i.expires_at
  from tenants_invitation i join tenants_tenant t on t.id = i.tenant_id
  where i.hashed_token = p_hashed_token and i.used_at is null and i.revoked_at is null
    and i.expires_at > ductor_now() and t.status = 'active' and i.tenant_id <> '00000000-0000-7000-8000-000000000000';
end $$;
