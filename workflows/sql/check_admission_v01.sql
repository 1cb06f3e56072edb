-- The early, unlocked look before tasks are inserted: refuses what is sure to be refused at commit. Keys that exist
-- already ask for no place. The exact answer is the admission trigger's. Raises TN424, TN409, TN423, WF429.
create or replace function workflows_check_admission(p_tenant_id uuid, p_tasks jsonb) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
  v_queue text;
  v_count int;
  v_load record;
  v_system boolean := p_tenant_id = '00000000-0000-7000-8000-000000000000';
begin
  select q.queue into v_queue from (select distinct e ->> 'queue' as queue from jsonb_array_elements(p_tasks) e) q
  where not exists (select from tenants_queue k where k.name = q.queue) or (q.queue = 'system') <> v_system limit 1;
  if found then
    perform tenants_raise('TN424', format('There is no queue %s here.', quote_literal(v_queue)),
      jsonb_build_object('queue', v_queue));
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
