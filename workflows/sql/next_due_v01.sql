-- The earliest time at which a waiting task of a queue may become ready: how long an idle worker can sleep.
create or replace function workflows_next_due(p_queue text) returns timestamptz
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
  select min(t.wake_at) from tenants_turn t where t.queue = p_queue
$$;
