-- Move the counters by tasks that gave their leases back: p_moves holds one move a task (see workflows_returned), in which
-- expected_us is what it used, or null. The mean of these moves the turn's estimate by an eighth, as TCP's round-trip
-- estimate does (RFC 6298). Moves are all that is carried: whole rows would bring their inputs and outputs with them.
create or replace function workflows_count_moves(p_moves tenants_move[]) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  perform tenants_move_work((
    select array_agg(row(m.tenant_id, m.queue, m.queued, m.waiting, m.leased, 0, m.completed, m.failed, 0, m.key,
      (t.expected_us * 7 + m.used) / 8, m.next_due_at, m.wake_at)::tenants_move)
    from (
      select u.tenant_id, u.queue, sum(u.queued)::int as queued, sum(u.waiting)::int as waiting,
        sum(u.leased)::int as leased, sum(u.completed)::int as completed, sum(u.failed)::int as failed,
        sum(u.key)::bigint as key, avg(u.expected_us)::bigint as used, min(u.next_due_at) as next_due_at,
        min(u.wake_at) as wake_at
      from unnest(p_moves) u group by u.tenant_id, u.queue) m
    join tenants_turn t on t.tenant_id = m.tenant_id and t.queue = m.queue));
end $$;
