-- Move the counters by tasks that gave their leases back and now stand queued, waiting or terminal. p_moved holds their
-- new rows; p_corrections, where given, what each one's turn key is corrected by, and p_used_us what it used (its mean
-- moves the turn's estimate by an eighth, as TCP's round-trip estimate does: RFC 6298).
create or replace function workflows_count_returned(
  p_moved workflows_task[], p_corrections bigint[] default null, p_used_us bigint[] default null) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  perform tenants_move_work((
    select array_agg(row(m.tenant_id, m.queue, m.queued, m.waiting, -m.n, 0, m.completed, m.failed, 0, m.correction,
      (t.expected_us * 7 + m.used) / 8, m.next_due_at, m.wake_at)::tenants_move)
    from (
      select k.tenant_id, k.queue::text, count(*)::int as n,
        (count(*) filter (where k.state = 'queued'))::int as queued,
        (count(*) filter (where k.state = 'waiting'))::int as waiting,
        (count(*) filter (where k.state = 'completed'))::int as completed,
        (count(*) filter (where k.state = 'failed'))::int as failed,
        coalesce(sum(p_corrections[k.ordinality]), 0)::bigint as correction, avg(p_used_us[k.ordinality])::bigint as used,
        min(k.due_at) filter (where k.state = 'queued') as next_due_at,
        min(k.due_at) filter (where k.state = 'waiting') as wake_at
      from unnest(p_moved) with ordinality k group by k.tenant_id, k.queue) m
    join tenants_turn t on t.tenant_id = m.tenant_id and t.queue = m.queue));
end $$;
