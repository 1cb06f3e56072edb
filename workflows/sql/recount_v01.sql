-- Count one tenant's tasks and set the counters of its load row and turns to that; the caller holds the load row.
create or replace function workflows_recount(p_tenant_id uuid) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
  v_work tenants_move[];
begin
  perform tenants_require_scope(p_tenant_id);
  select coalesce(array_agg(row(p_tenant_id, c.queue, c.queued, c.waiting, c.leased, 0, c.completed, c.failed, c.cancelled,
    0, null, c.next_due_at, c.wake_at)::tenants_move), '{}')
  into v_work from (
    select k.queue, count(*) filter (where k.state = 'queued')::int as queued,
      count(*) filter (where k.state = 'waiting')::int as waiting,
      count(*) filter (where k.state = 'leased')::int as leased,
      count(*) filter (where k.state = 'completed')::int as completed,
      count(*) filter (where k.state = 'failed')::int as failed,
      count(*) filter (where k.state = 'cancelled')::int as cancelled,
      min(k.due_at) filter (where k.state = 'queued') as next_due_at,
      min(k.due_at) filter (where k.state = 'waiting') as wake_at
    from workflows_task k where k.tenant_id = p_tenant_id group by k.queue) c;
  perform tenants_recount(p_tenant_id, v_work);
end $$;
