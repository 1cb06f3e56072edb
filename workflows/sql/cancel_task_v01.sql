-- Cancel one task of the attached tenant, wherever it stands short of its end; answers the state it was in. A worker
-- that has it leased hears of it at its next heartbeat, and can't write any more. Raises WF404, WF411.
-- Lock order: load, task, turn. DEFINER: the caller's role can't write counters.
create or replace function workflows_cancel_task(p_tenant_id uuid, p_task_id uuid, p_reason text) returns text
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_was record;
  v_now timestamptz;
  v_next timestamptz;
begin
  perform tenants_require_scope(p_tenant_id);
  perform 1 from tenants_load l where l.tenant_id = p_tenant_id for no key update;
  select k.state, k.queue, k.terminal_at into v_was from workflows_task k
  where k.tenant_id = p_tenant_id and k.id = p_task_id for no key update;
  if not found then
    perform tenants_raise('WF404', 'There is no such task.');
  elsif v_was.terminal_at is not null then
    perform tenants_raise('WF411', format('The task has ended already: it is %s.', v_was.state),
      jsonb_build_object('state', v_was.state));
  end if;
  v_now := ductor_now();
  update workflows_task k set state = 'cancelled', terminal_at = v_now, worker = null, lease_expires_at = null,
    reason = nullif(p_reason, '')
  where k.tenant_id = p_tenant_id and k.id = p_task_id and k.state = v_was.state;
  select min(k.due_at) into v_next from workflows_task k
  where k.tenant_id = p_tenant_id and k.queue = v_was.queue and k.state = v_was.state and v_was.state <> 'leased';
  perform tenants_move_work(array[row(p_tenant_id, v_was.queue, -(v_was.state = 'queued')::int,
    -(v_was.state = 'waiting')::int, -(v_was.state = 'leased')::int, 0, 0, 0, 1, 0, null, v_next, v_next)::tenants_move]);
  return v_was.state;
end $$;
