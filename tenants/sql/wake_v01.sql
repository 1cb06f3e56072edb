-- Notify idle workers of these queues, if there are any. A commit that notifies takes one lock for the whole server,
-- so a busy platform, where nobody listens, never pays for it. The payload is constant: LISTEN knows no tenants.
-- Who finds nobody idle holds a shared lock to his commit and looks once more: a worker that registers in between finds
-- the lock taken (workflows_next_due) and does not go to sleep for long before it has seen what was committed.
create or replace function tenants_wake(p_queue text[]) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
  v_idle boolean := exists (
    select from tenants_listener l where l.queues && p_queue::varchar[] and l.expires_at > ductor_now());
begin
  if not v_idle then
    perform pg_advisory_xact_lock_shared(hashtextextended('ductor.wake:' || q, 0)) from unnest(p_queue) q;
    v_idle := exists (
      select from tenants_listener l where l.queues && p_queue::varchar[] and l.expires_at > ductor_now());
  end if;
  if v_idle then
    perform pg_notify('ductor_wake', '');
  end if;
end $$;
