-- Look up a credential by the hash of what was presented, before any tenant is known: at most one row, and only what
-- an authenticated request needs. Revoked, expired and unknown keys, and keys of tenants that may not act, are alike.
-- Never the system tenant: nobody acts as it, whatever rows somebody has planted.
create or replace function tenants_find_api_key(p_prefix text, p_hashed_key text)
returns table (tenant_id uuid, slug varchar, service_class varchar, key_id uuid, name varchar, scopes varchar[],
  behind text)
language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  return query
  select k.tenant_id, t.slug, t.service_class, k.id, k.name, k.scopes, coalesce(nullif(k.created_by ->> 'behind', ''), k.created_by ->> 'name')
  from tenants_apikey k join tenants_tenant t on t.id = k.tenant_id
  where k.prefix = p_prefix and k.hashed_key = p_hashed_key and k.revoked_at is null
    and (k.expires_at is null or k.expires_at > ductor_now()) and t.status = 'active'
    and k.tenant_id <> '00000000-0000-7000-8000-000000000000';
end $$;
