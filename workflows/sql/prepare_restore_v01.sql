-- Make the staged tasks of one tenant (pg_temp.staged_workflows_task, staged_workflows_taskkey; tenants.archives) fit to
-- take the place of its live ones, or refuse them; the caller holds the load row. Answers the token of all of them: one
-- above every token of the file, of the live rows and p_token, the highest of earlier restores. So no write fits under
-- a claim of before, even of a task that an earlier restore took out and this one brings back.
-- A task that was leased at the backup comes back queued, with the attempt that had begun.
-- Raises WF414 while a task of the tenant is leased, TN424 for a queue that is not there, TN433 where the file's tasks and
-- keys contradict each other.
create or replace function workflows_prepare_restore(p_tenant_id uuid, p_token bigint) returns bigint
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
  v_leased int;
  v_wrong int;
  v_queue text;
  v_token bigint;
begin
  perform tenants_require_scope(p_tenant_id);
  select count(*) into v_leased from workflows_task k where k.tenant_id = p_tenant_id and k.state = 'leased';
  if v_leased > 0 then
    perform tenants_raise('WF414', format('%s tasks of the tenant are leased.', v_leased),
      jsonb_build_object('leased', v_leased));
  end if;
  select s.queue into v_queue from pg_temp.staged_workflows_task s
  where s.tenant_id = p_tenant_id and not exists (select from tenants_queue q where q.name = s.queue) limit 1;
  if v_queue is not null then
    perform tenants_raise('TN424', format('Tasks of the file stand in the queue %s, which is not there.', v_queue),
      jsonb_build_object('queue', v_queue));
  end if;
  if exists (select from pg_temp.staged_workflows_task s where s.tenant_id = p_tenant_id
      and (s.terminal_at is null) <> (s.state in ('queued', 'leased', 'waiting'))
        or s.state not in ('queued', 'leased', 'waiting', 'completed', 'failed', 'cancelled')) then
    perform tenants_raise('TN433', 'A task of the file has a state that contradicts its end.');
  end if;
  -- Counted, since the plan of an EXISTS hopes for an early end and reads all keys again for each task of a sound file.
  select count(*) into v_wrong from pg_temp.staged_workflows_task s
  left join pg_temp.staged_workflows_taskkey y on y.tenant_id = s.tenant_id and y.task_id = s.id
  where s.tenant_id = p_tenant_id and s.key is distinct from y.key;
  if v_wrong > 0 then
    perform tenants_raise('TN433', 'A task of the file and the keys of the file contradict each other.');
  end if;
  select greatest(p_token, (select max(s.token) from pg_temp.staged_workflows_task s where s.tenant_id = p_tenant_id),
    (select max(k.token) from workflows_task k where k.tenant_id = p_tenant_id)) + 1 into v_token;
  update pg_temp.staged_workflows_task s set token = v_token, worker = null, lease_expires_at = null,
    state = case s.state when 'leased' then 'queued' else s.state end,
    reason = case s.state when 'leased' then 'restored' else s.reason end
  where s.tenant_id = p_tenant_id;
  return v_token;
end $$;
