-- The earliest time at which a task of a queue may become claimable: how long an idle worker can sleep. A turn that is
-- ready already was passed over by the claim because its tenant's row was locked just then: look again at once.
create or replace function workflows_next_due(p_queue text) returns timestamptz
language sql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
  select case when exists (select from tenants_turn r where r.queue = p_queue and r.blocked = 0) then ductor_now()
    else (select min(t.wake_at) from tenants_turn t where t.queue = p_queue) end
$$;
