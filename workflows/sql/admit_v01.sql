-- Constraint trigger function on workflows_admission, deferred to commit: admits what one start() inserted, or refuses
-- it (see workflows_refuse_over_limit). DEFINER: the caller's role can't write load and turn rows.
-- Lock order: load, turn. Raises unless exactly one load row was there to be charged.
create or replace function workflows_admit() returns trigger
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_load record;
  v_move tenants_move;
  v_count int := new.queued + new.waiting;
begin
  select l.outstanding, l.max_outstanding, l.frozen into v_load from tenants_load l
  where l.tenant_id = new.tenant_id for no key update;
  perform workflows_refuse_over_limit(new.tenant_id, v_count, v_load.outstanding, v_load.max_outstanding, v_load.frozen);
  if not exists (select from tenants_turn t where t.tenant_id = new.tenant_id and t.queue = new.queue) then
    insert into tenants_turn (tenant_id, queue, id, key, blocked, below_floor, queued, waiting, expected_us, completed,
      failed, cancelled)
    values (new.tenant_id, new.queue, gen_random_uuid(), 0, 1, false, 0, 0, 100000, 0, 0, 0);
    insert into workflows_partition (tenant_id, queue, key, id, virtual_key)
    values (new.tenant_id, new.queue, '', gen_random_uuid(), 0) on conflict do nothing;
  end if;
  v_move.tenant_id := new.tenant_id;
  v_move.queue := new.queue;
  v_move.queued := new.queued;
  v_move.waiting := new.waiting;
  v_move.admitted := v_count;
  v_move.next_due_at := new.next_due_at;
  v_move.wake_at := new.wake_at;
  perform tenants_move_work(array[v_move]);
  delete from workflows_admission a where a.tenant_id = new.tenant_id and a.id = new.id;
  return null;
end $$;
