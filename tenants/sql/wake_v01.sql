-- Notify idle workers of these queues, if there are any. A commit that notifies takes one lock for the whole server,
-- so a busy platform, where nobody listens, never pays for it. The payload is constant: LISTEN knows no tenants.
create or replace function tenants_wake(p_queue text[]) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  if exists (select from tenants_listener l where l.queues && p_queue::varchar[] and l.expires_at > ductor_now()) then
    perform pg_notify('ductor_wake', '');
  end if;
end $$;
