-- Insert tasks of one tenant: keys and task rows now, and one admission row a queue, whose deferred trigger holds the
-- limits at commit. Nothing shared is locked: a caller's open transaction delays nobody but a start of the same key.
-- p_tasks: array of {id, key, content_hash, workflow, version, queue, priority, due_at | delay_seconds, input,
-- max_failures, origin}. p_immediate holds the limits now and not at commit. Answers one row a task, in order: the task's id and whether it was made here.
-- Raises WF400 (bounds 1..1000), TN424 (queue), TN409 (policy), TN423 (frozen), WF429 (limit, unlocked early look),
-- WF409 (key used with other content), TN500, TN501 (scope). Keys are inserted in key order, so that two calls can't
-- deadlock on them. DEFINER: no plain role can insert a task, a key or an admission row by itself, so what stands in the
-- tables was admitted.
create or replace function workflows_enqueue_tasks(p_tenant_id uuid, p_tasks jsonb, p_immediate boolean default false)
returns table (task_id uuid, created boolean)
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_count int := jsonb_array_length(p_tasks);
  v_now timestamptz;
  v_task record;
  v_found record;
  v_due timestamptz;
  v_ids uuid[] := array_fill(null::uuid, array[greatest(v_count, 1)]);
  v_created boolean[] := array_fill(false, array[greatest(v_count, 1)]);
  v_queues text[] := array_fill(null::text, array[greatest(v_count, 1)]);
  v_dues timestamptz[] := array_fill(null::timestamptz, array[greatest(v_count, 1)]);
  v_waits boolean[] := array_fill(false, array[greatest(v_count, 1)]);
begin
  perform tenants_require_scope(p_tenant_id);
  if v_count not between 1 and 1000 then
    perform tenants_raise('WF400', format('A start takes 1 to 1000 tasks, got %s.', v_count),
      jsonb_build_object('minimum', 1, 'maximum', 1000, 'seen', v_count));
  end if;
  perform workflows_check_admission(p_tenant_id, p_tasks);
  v_now := ductor_now();
  for v_task in
    select t.*, e.n from jsonb_array_elements(p_tasks) with ordinality e(doc, n),
      jsonb_to_record(e.doc) t(id uuid, key text, content_hash text, workflow text, version int, queue text,
        priority smallint, due_at timestamptz, delay_seconds double precision, input jsonb, max_failures int,
        origin jsonb)
    order by t.key, e.n
  loop
    if v_task.key is not null then
      insert into workflows_taskkey (tenant_id, key, task_id, content_hash)
      values (p_tenant_id, v_task.key, v_task.id, v_task.content_hash) on conflict (tenant_id, key) do nothing;
      if not found then
        select k.task_id, k.content_hash into v_found from workflows_taskkey k
        where k.tenant_id = p_tenant_id and k.key = v_task.key;
        if v_found.content_hash <> v_task.content_hash then
          perform tenants_raise('WF409', 'This key was used for a task with other content.',
            jsonb_build_object('key', v_task.key));
        end if;
        v_ids[v_task.n] := v_found.task_id;
        continue;
      end if;
    end if;
    v_due := coalesce(v_task.due_at, v_now + make_interval(secs => coalesce(v_task.delay_seconds, 0)));
    insert into workflows_task (tenant_id, id, key, workflow, version, queue, partition, priority, state, reason, input,
      origin, root_run_id, chain_id, nesting_depth, created_at, due_at, max_failures, attempt, failures, alone, token,
      charged_us)
    values (p_tenant_id, v_task.id, v_task.key, v_task.workflow, v_task.version, v_task.queue, '', v_task.priority,
      case when v_due > v_now then 'waiting' else 'queued' end, case when v_due > v_now then 'delayed' end,
      v_task.input, v_task.origin, v_task.id, v_task.id, 0, v_now, greatest(v_due, v_now), v_task.max_failures, 0, 0,
      false, 0, 0);
    v_ids[v_task.n] := v_task.id;
    v_created[v_task.n] := true;
    v_queues[v_task.n] := v_task.queue;
    v_dues[v_task.n] := greatest(v_due, v_now);
    v_waits[v_task.n] := v_due > v_now;
  end loop;
  -- From what was inserted just now, not from the tasks: a plan made while the table was small would read all of them.
  insert into workflows_admission (tenant_id, id, queue, queued, waiting, next_due_at, wake_at)
  select p_tenant_id, gen_random_uuid(), v.queue, count(*) filter (where not v.waits), count(*) filter (where v.waits),
    min(v.due_at) filter (where not v.waits), min(v.due_at) filter (where v.waits)
  from unnest(v_queues, v_dues, v_waits) v(queue, due_at, waits) where v.queue is not null group by v.queue;
  if p_immediate then
    set constraints workflows_admission_admit immediate;
  end if;
  return query select * from unnest(v_ids, v_created);
end $$;
