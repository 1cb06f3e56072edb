-- Trigger function: of a key nothing changes but that it is revoked, once. Whoever could widen its scopes, prolong it or
-- call it back to life would make a credential that no verb and no audit row knows of.
create or replace function tenants_keep_key() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  if to_jsonb(new) - 'revoked_at' is distinct from to_jsonb(old) - 'revoked_at' or old.revoked_at is not null
      or new.revoked_at is null then
    raise exception using errcode = '42501', message = 'a key changes only by being revoked, once';
  end if;
  return new;
end $$;
