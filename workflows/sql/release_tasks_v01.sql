-- Give back up to 1000 leased tasks of one worker that were not started: queued again, or waiting for p_delay_seconds,
-- without a charge and with the attempt given back. p_claims: array of {tenant_id, task_id, token}. Answers one row each:
-- released, stale (the claim no longer holds) or skipped (its tenant was locked; call again with p_wait).
-- Lock order: load in key order (SKIP LOCKED unless p_wait), task in key order, turn.
create or replace function workflows_release_tasks(
  p_worker text, p_claims jsonb, p_delay_seconds double precision, p_reason text, p_wait boolean)
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
  perform workflows_check_bounds('A release', jsonb_array_length(p_claims), 1000);
  select array_agg(distinct (c ->> 'tenant_id')::uuid) into v_tenants from jsonb_array_elements(p_claims) c;
  if p_wait then
    select array_agg(d.tenant_id) into v_locked from (select l.tenant_id from tenants_load l
      where l.tenant_id = any(v_tenants) order by l.tenant_id for no key update) d;
  else
    select array_agg(d.tenant_id) into v_locked from (select l.tenant_id from tenants_load l
      where l.tenant_id = any(v_tenants) order by l.tenant_id for no key update skip locked) d;
  end if;
  -- Neither the state nor the locked tenants are asked of the task itself (see workflows_finish_tasks).
  perform 1 from workflows_task k join jsonb_to_recordset(p_claims) c(tenant_id uuid, task_id uuid, token bigint)
    on c.tenant_id = k.tenant_id and c.task_id = k.id and c.token = k.token
  where c.tenant_id = any(v_locked) and k.worker = p_worker
  order by k.tenant_id, k.id for no key update of k;
  v_now := ductor_now();
  with moved as (
    update workflows_task k set state = case when p_delay_seconds > 0 then 'waiting' else 'queued' end, worker = null,
      lease_expires_at = null, attempt = k.attempt - 1, reason = nullif(p_reason, ''),
      due_at = case when p_delay_seconds > 0 then v_now + make_interval(secs => p_delay_seconds) else k.due_at end
    from jsonb_to_recordset(p_claims) c(tenant_id uuid, task_id uuid, token bigint)
    where c.tenant_id = any(v_locked) and k.tenant_id = c.tenant_id and k.id = c.task_id and k.token = c.token
      and k.worker = p_worker and k.lease_expires_at > v_now
    returning k.tenant_id, k.id, k.token,
      workflows_returned(k.tenant_id, k.queue, k.state, k.due_at, -k.charged_us, null) as move)
  select array_agg(m.tenant_id), array_agg(m.id), array_agg(m.token), array_agg(m.move)
  into v_owners, v_ids, v_tokens, v_moves from moved m;
  if v_moves is not null then
    perform workflows_count_moves(v_moves);
  end if;
  return query
  select c.tenant_id, c.task_id, case when m.id is not null then 'released'
    when c.tenant_id = any(v_locked) or not exists (select from tenants_load l where l.tenant_id = c.tenant_id)
    then 'stale' else 'skipped' end
  from jsonb_to_recordset(p_claims) c(tenant_id uuid, task_id uuid, token bigint)
  left join unnest(v_owners, v_ids, v_tokens) m(tenant_id, id, token)
    on m.tenant_id = c.tenant_id and m.id = c.task_id and m.token = c.token;
end $$;
