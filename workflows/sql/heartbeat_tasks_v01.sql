-- Extend up to 1000 leases of one worker; never shortens one. p_beats: array of {tenant_id, task_id, token, progress}.
-- Answers one row each: extended, skipped (the row was locked: beat again) or lost (only this one is stale).
-- Takes task rows only, SKIP LOCKED: waits for nobody.
create or replace function workflows_heartbeat_tasks(p_worker text, p_beats jsonb, p_lease_seconds double precision)
returns table (tenant_id uuid, task_id uuid, result text)
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_now timestamptz;
  v_tenants uuid[];
  v_ids uuid[];
  v_owners uuid[];
  v_beaten uuid[];
  v_tokens bigint[];
begin
  perform workflows_check_bounds('A heartbeat', jsonb_array_length(p_beats), 1000);
  -- A worker's name stands in leased rows only; the state is not asked for besides (see workflows_finish_tasks).
  select array_agg(d.tenant_id), array_agg(d.id) into v_tenants, v_ids from (
    select k.tenant_id, k.id from workflows_task k
    join jsonb_to_recordset(p_beats) b(tenant_id uuid, task_id uuid, token bigint)
      on b.tenant_id = k.tenant_id and b.task_id = k.id and b.token = k.token
    where k.worker = p_worker
    order by k.tenant_id, k.id for no key update of k skip locked) d;
  v_now := ductor_now();
  with beaten as (
    update workflows_task k set
      lease_expires_at = greatest(k.lease_expires_at, v_now + make_interval(secs => p_lease_seconds)),
      progress = coalesce(b.progress, k.progress)
    from unnest(v_tenants, v_ids) d(tenant_id, id)
    join jsonb_to_recordset(p_beats) b(tenant_id uuid, task_id uuid, token bigint, progress jsonb)
      on b.tenant_id = d.tenant_id and b.task_id = d.id
    where k.tenant_id = d.tenant_id and k.id = d.id and k.token = b.token and k.worker = p_worker
      and k.lease_expires_at > v_now
    returning k.tenant_id, k.id, k.token)
  select array_agg(x.tenant_id), array_agg(x.id), array_agg(x.token) into v_owners, v_beaten, v_tokens from beaten x;
  return query
  select b.tenant_id, b.task_id, case when h.id is not null then 'extended'
    when exists (select from unnest(v_tenants, v_ids) d(tenant_id, id)
      where d.tenant_id = b.tenant_id and d.id = b.task_id) then 'lost'
    when exists (select from workflows_task k where k.tenant_id = b.tenant_id and k.id = b.task_id and k.token = b.token
      and k.worker = p_worker and k.lease_expires_at > v_now) then 'skipped'
    else 'lost' end
  from jsonb_to_recordset(p_beats) b(tenant_id uuid, task_id uuid, token bigint)
  left join unnest(v_owners, v_beaten, v_tokens) h(tenant_id, id, token)
    on h.tenant_id = b.tenant_id and h.id = b.task_id and h.token = b.token;
end $$;
