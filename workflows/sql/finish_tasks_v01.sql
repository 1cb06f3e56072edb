-- End the tick of up to 1000 leased tasks of one worker: completed, failed, or retry (waiting for its delay, or queued).
-- p_outcomes: array of {tenant_id, task_id, token, kind, output, error, delay_seconds, failure, used_us, progress,
-- steps: [{name, attempt, state, output, error, started_at, finished_at}]}. Answers one row each: finished, stale (the
-- claim no longer holds; nothing of it was written) or skipped (its tenant was locked; call again with p_wait).
-- A tenant that p_wait waits for longer than two seconds raises lock_not_available.
-- A retry with `failure` at max_failures ends failed. The turn key is corrected from the charge to what was used.
-- Lock order: load in key order (SKIP LOCKED unless p_wait), task in key order, turn.
create or replace function workflows_finish_tasks(p_worker text, p_outcomes jsonb, p_wait boolean)
returns table (tenant_id uuid, task_id uuid, result text)
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set lock_timeout = '2s' as $$
declare
  v_tenants uuid[];
  v_locked uuid[];
  v_now timestamptz;
  v_owners uuid[];
  v_ids uuid[];
  v_tokens bigint[];
  v_moves tenants_move[];
begin
  perform workflows_check_bounds('A finish', jsonb_array_length(p_outcomes), 1000);
  select array_agg(distinct (o ->> 'tenant_id')::uuid) into v_tenants from jsonb_array_elements(p_outcomes) o;
  if p_wait then
    select array_agg(d.tenant_id) into v_locked from (select l.tenant_id from tenants_load l
      where l.tenant_id = any(v_tenants) order by l.tenant_id for no key update) d;
  else
    select array_agg(d.tenant_id) into v_locked from (select l.tenant_id from tenants_load l
      where l.tenant_id = any(v_tenants) order by l.tenant_id for no key update skip locked) d;
  end if;
  -- A worker's name stands in leased rows only (a CHECK says so). The state is not asked for besides: the plan would turn
  -- to the index of all leases of the platform instead of the batch's own keys. And it is the outcome's tenant that is
  -- compared with the locked ones: asked of the task, the plan would read all that the tenant ever did.
  perform 1 from workflows_task k
  join jsonb_to_recordset(p_outcomes) o(tenant_id uuid, task_id uuid, token bigint)
    on o.tenant_id = k.tenant_id and o.task_id = k.id and o.token = k.token
  where o.tenant_id = any(v_locked) and k.worker = p_worker order by k.tenant_id, k.id for no key update of k;
  v_now := ductor_now();
  with outcome as materialized (
    select o.tenant_id, o.task_id, o.token, o.kind, o.output, o.error, coalesce(o.delay_seconds, 0) as delay_seconds,
      coalesce(o.failure, false) as failure, coalesce(o.used_us, 0) as used_us, o.progress, l.weight
    from jsonb_to_recordset(p_outcomes) o(tenant_id uuid, task_id uuid, token bigint, kind text, output jsonb,
      error jsonb, delay_seconds double precision, failure boolean, used_us bigint, progress jsonb)
    join tenants_load l on l.tenant_id = o.tenant_id
    where o.tenant_id = any(v_locked)),
  moved as (
    update workflows_task k set worker = null, lease_expires_at = null, alone = false,
      state = workflows_state_after(o.kind, o.failure, k.failures, k.max_failures, o.delay_seconds),
      failures = k.failures + (o.failure or o.kind = 'failed')::int,
      output = case when o.kind = 'completed' then o.output end, error = o.error,
      progress = coalesce(o.progress, k.progress),
      reason = case workflows_state_after(o.kind, o.failure, k.failures, k.max_failures, o.delay_seconds)
        when 'waiting' then 'backoff' when 'failed' then 'handler_failed' end,
      terminal_at = case when workflows_state_after(o.kind, o.failure, k.failures, k.max_failures, o.delay_seconds)
        in ('completed', 'failed') then v_now end,
      due_at = case when o.kind = 'retry' then v_now + make_interval(secs => o.delay_seconds) else k.due_at end
    from outcome o where k.tenant_id = o.tenant_id and k.id = o.task_id and k.token = o.token and k.worker = p_worker
      and k.lease_expires_at > v_now
    returning k.tenant_id, k.id, k.token, k.queue, k.state, k.due_at, k.charged_us, o.weight,
      greatest(1000, least(o.used_us, extract(epoch from v_now - k.claimed_at) * 1000000))::bigint as used)
  select array_agg(m.tenant_id), array_agg(m.id), array_agg(m.token), array_agg(workflows_returned(
    m.tenant_id, m.queue, m.state, m.due_at, m.used / m.weight - m.charged_us, m.used))
  into v_owners, v_ids, v_tokens, v_moves from moved m;
  if v_moves is not null then
    perform workflows_count_moves(v_moves);
    if jsonb_path_exists(p_outcomes, '$[*].steps[0]') then
      perform workflows_insert_steps(p_outcomes, v_owners, v_ids, v_tokens);
    end if;
  end if;
  return query
  select o.tenant_id, o.task_id, case when m.id is not null then 'finished'
    when o.tenant_id = any(v_locked) or not exists (select from tenants_load l where l.tenant_id = o.tenant_id)
    then 'stale' else 'skipped' end
  from jsonb_to_recordset(p_outcomes) o(tenant_id uuid, task_id uuid, token bigint)
  left join unnest(v_owners, v_ids, v_tokens) m(tenant_id, id, token)
    on m.tenant_id = o.tenant_id and m.id = o.task_id and m.token = o.token;
end $$;
