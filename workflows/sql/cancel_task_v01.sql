-- Cancel one task of the attached tenant, wherever it stands short of its end; answers the state it was in. A worker
-- that has it leased hears of it at its next heartbeat, and can't write any more. Raises WF404, WF411.
-- Who had it leased pays for the lease-seconds used, as at a finish. Lock order: load, task, turn. DEFINER: the caller's
-- role can't write counters.
create or replace function workflows_cancel_task(p_tenant_id uuid, p_task_id uuid, p_reason text) returns text
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_was record;
  v_weight int;
  v_now timestamptz;
  v_next timestamptz;
  v_correction bigint := 0;
begin
  perform tenants_require_scope(p_tenant_id);
  select l.weight into v_weight from tenants_load l where l.tenant_id = p_tenant_id for no key update;
  select k.state, k.queue, k.terminal_at, k.claimed_at, k.charged_us into v_was from workflows_task k
  where k.tenant_id = p_tenant_id and k.id = p_task_id for no key update;
  if not found then
    perform tenants_raise('WF404', 'There is no such task.');
  elsif v_was.terminal_at is not null then
    perform tenants_raise('WF411', format('The task has ended already: it is %s.', v_was.state),
      jsonb_build_object('state', v_was.state));
  end if;
  v_now := ductor_now();
  update workflows_task k set state = 'cancelled', terminal_at = v_now, worker = null, lease_expires_at = null,
    reason = nullif(left(p_reason, 1000), '')
  where k.tenant_id = p_tenant_id and k.id = p_task_id and k.state = v_was.state;
  -- The state stands in each statement as a literal: only so can its partial index serve, however long the history is.
  if v_was.state = 'queued' then
    select k.due_at into v_next from workflows_task k
    where k.tenant_id = p_tenant_id and k.queue = v_was.queue and k.state = 'queued'
    order by k.partition, k.priority desc, k.due_at, k.id limit 1;
  elsif v_was.state = 'waiting' then
    select min(k.due_at) into v_next from workflows_task k
    where k.tenant_id = p_tenant_id and k.queue = v_was.queue and k.state = 'waiting';
  else
    v_correction := greatest(1000, extract(epoch from v_now - v_was.claimed_at) * 1000000)::bigint / v_weight
      - v_was.charged_us;
  end if;
  perform tenants_move_work(array[row(p_tenant_id, v_was.queue, -(v_was.state = 'queued')::int,
    -(v_was.state = 'waiting')::int, -(v_was.state = 'leased')::int, 0, 0, 0, 1, v_correction, null, v_next,
    v_next)::tenants_move]);
  return v_was.state;
end $$;
