-- Record steps of up to 1000 leased tasks of one worker, which stay leased. p_records: array of {tenant_id, task_id,
-- token, steps: [...]} as in workflows_finish_tasks. Answers the claims that were lost; nothing of theirs was written.
-- Lock order: with p_with_load (an atomic step, whose transaction has work of the tenant in it) the load row first;
-- then task rows in key order.
create or replace function workflows_record_steps(p_worker text, p_records jsonb, p_with_load boolean)
returns table (tenant_id uuid, task_id uuid)
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_now timestamptz;
  v_owners uuid[];
  v_ids uuid[];
  v_tokens bigint[];
begin
  perform workflows_check_bounds('A record of steps', jsonb_array_length(p_records), 1000);
  if p_with_load then
    perform 1 from tenants_load l where l.tenant_id in (
      select (r ->> 'tenant_id')::uuid from jsonb_array_elements(p_records) r)
    order by l.tenant_id for no key update;
  end if;
  -- A worker's name stands in leased rows only; the state is not asked for besides (see workflows_finish_tasks).
  -- A claim that no longer holds locks nothing: whoever has the task now is not to meet this batch crosswise.
  perform 1 from workflows_task k join jsonb_to_recordset(p_records) r(tenant_id uuid, task_id uuid, token bigint)
    on r.tenant_id = k.tenant_id and r.task_id = k.id and r.token = k.token
  where k.worker = p_worker
  order by k.tenant_id, k.id for no key update of k;
  v_now := ductor_now();
  select array_agg(k.tenant_id), array_agg(k.id), array_agg(k.token) into v_owners, v_ids, v_tokens
  from workflows_task k
  join jsonb_to_recordset(p_records) r(tenant_id uuid, task_id uuid, token bigint)
    on r.tenant_id = k.tenant_id and r.task_id = k.id and r.token = k.token
  where k.worker = p_worker and k.lease_expires_at > v_now;
  if v_ids is not null then
    perform workflows_insert_steps(p_records, v_owners, v_ids, v_tokens);
  end if;
  return query
  select r.tenant_id, r.task_id from jsonb_to_recordset(p_records) r(tenant_id uuid, task_id uuid, token bigint)
  where not exists (select from unnest(v_owners, v_ids, v_tokens) h(tenant_id, id, token)
    where h.tenant_id = r.tenant_id and h.id = r.task_id and h.token = r.token);
end $$;
