-- Insert the step records that outcomes or records carry, for the tasks with these owners, ids and tokens, whose
-- rows the caller has locked.
create or replace function workflows_insert_steps(p_docs jsonb, p_owners uuid[], p_ids uuid[], p_tokens bigint[])
returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  insert into workflows_step (tenant_id, task_id, name, attempt, id, state, output, error, token, started_at,
    finished_at)
  select h.tenant_id, h.id, s.name, s.attempt, gen_random_uuid(), s.state, s.output, s.error, h.token, s.started_at,
    s.finished_at
  from jsonb_to_recordset(p_docs) d(tenant_id uuid, task_id uuid, token bigint, steps jsonb)
  join unnest(p_owners, p_ids, p_tokens) h(tenant_id, id, token)
    on h.tenant_id = d.tenant_id and h.id = d.task_id and h.token = d.token
  cross join lateral jsonb_to_recordset(d.steps) s(name text, attempt int, state text, output jsonb, error jsonb,
    started_at timestamptz, finished_at timestamptz)
  where jsonb_typeof(d.steps) = 'array';
end $$;
