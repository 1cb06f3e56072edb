-- The move of one task that gave its lease back and now stands in p_state: what its turn key is corrected by, and what
-- it used (null where that says nothing about others).
create or replace function workflows_returned(p_tenant_id uuid, p_queue text, p_state text, p_due_at timestamptz,
  p_correction bigint, p_used_us bigint) returns tenants_move
language sql immutable parallel safe as $$
  select row(p_tenant_id, p_queue, (p_state = 'queued')::int, (p_state = 'waiting')::int, -1, 0,
    (p_state = 'completed')::int, (p_state = 'failed')::int, 0, p_correction, p_used_us,
    case p_state when 'queued' then p_due_at end, case p_state when 'waiting' then p_due_at end)::tenants_move
$$;
