-- The earliest time at which a task of a queue may become claimable: how long an idle worker can sleep. A turn that is
-- ready already was passed over by the claim because its tenant's row was locked just then: look again at once. So does
-- who finds a wake-up under way: that transaction may have looked for idle workers before this one was registered, and
-- what it made ready shows only when it commits (tenants_wake holds the lock's other side). The lock is tried before
-- the turns are read, so that whoever is done with it by then is seen.
create or replace function workflows_next_due(p_queue text) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_settled boolean := pg_try_advisory_xact_lock(hashtextextended('ductor.wake:' || p_queue, 0));
begin
  if not v_settled or exists (select from tenants_turn r where r.queue = p_queue and r.blocked = 0) then
    return ductor_now();
  end if;
  return (select t.wake_at from tenants_turn t
    where t.queue = p_queue and t.wake_at is not null and t.blocked & 64 = 0 order by t.wake_at limit 1);
end $$;
