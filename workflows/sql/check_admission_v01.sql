-- The early, unlocked look before tasks are inserted: refuses what is sure to be refused at commit. Keys that exist
-- already ask for no place. The exact answer is the admission trigger's. Raises TN424, TN409, TN423, WF429, and WF422 for
-- values that no face lets through: a role that can call the function must not be able to put a time at infinity, or a
-- payload without end, before the workers of all tenants. (Faces allow 366 days and 256 KiB; the rest is room.)
create or replace function workflows_check_admission(p_tenant_id uuid, p_tasks jsonb) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
  v_queue text;
  v_count int;
  v_now timestamptz := ductor_now();
  v_load record;
  v_system boolean := p_tenant_id = '00000000-0000-7000-8000-000000000000';
begin
  select q.queue into v_queue from (select distinct e ->> 'queue' as queue from jsonb_array_elements(p_tasks) e) q
  where not exists (select from tenants_queue k where k.name = q.queue) or (q.queue = 'system') <> v_system limit 1;
  if found then
    perform tenants_raise('TN424', format('There is no queue %s here.', quote_literal(v_queue)),
      jsonb_build_object('queue', v_queue));
  end if;
  if exists (
    select from jsonb_to_recordset(p_tasks) t(key text, workflow text, version int, priority int, due_at timestamptz,
      delay_seconds double precision, max_failures int, input jsonb, origin jsonb)
    where not coalesce(length(t.workflow) between 1 and 128 and t.version >= 1 and t.priority between -100 and 100
      and coalesce(length(t.key), 1) between 1 and 128 and t.max_failures between 1 and 1000
      and coalesce(t.delay_seconds, 0) between 0 and 400 * 86400
      and (t.due_at is null or isfinite(t.due_at) and t.due_at < v_now + interval '400 days')
      and octet_length(coalesce(t.input::text, '')) <= 600000 and octet_length(t.origin::text) <= 20000, false)) then
    perform tenants_raise('WF422', 'A task has a value out of its bounds.');
  end if;
  select l.outstanding, l.max_outstanding, l.frozen into v_load from tenants_load l where l.tenant_id = p_tenant_id;
  -- The keys after the load row: a start of the same key that commits in between must show as a key, not only as a
  -- place that is taken.
  select count(*) filter (where e ->> 'key' is null) + count(distinct e ->> 'key') into v_count
  from jsonb_array_elements(p_tasks) e
  -- One look a key: as a join this could read all keys that the tenant ever used.
  where (select k.task_id from workflows_taskkey k where k.tenant_id = p_tenant_id and k.key = e ->> 'key' limit 1)
    is null;
  perform workflows_refuse_over_limit(p_tenant_id, v_count, v_load.outstanding, v_load.max_outstanding, v_load.frozen);
end $$;
