-- Start one task and answer its row, so that a start over HTTP is one call: the task made here under the id that p_task
-- brings, or the one that its key started before. p_task and what is raised: as in workflows_enqueue_tasks; the limits
-- are held at commit. Not DEFINER: what is answered passes row security like any other read of the caller.
create or replace function workflows_start_task(p_tenant_id uuid, p_task jsonb) returns setof workflows_task
language plpgsql set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_id uuid;
begin
  select e.task_id into v_id from workflows_enqueue_tasks(p_tenant_id, jsonb_build_array(p_task)) e;
  return query select t.* from workflows_task t where t.tenant_id = p_tenant_id and t.id = v_id;
end $$;
