-- Move the counters of many tenants: the only writer of load and turn counters and of the bits that follow from them.
-- p_moves: one tenants_move a (tenant, queue), each pair once, with deltas for counters and key; null is no change.
-- next_due_at: where work is added, the added work's earliest due time; where it is removed, the new earliest.
-- wake_at: likewise for waiting work; where waiting work is removed it replaces the old value.
-- Lock order: the caller holds the load rows; turn rows follow. A turn that becomes ready gets max(own key, clock), so
-- that idling banks nothing; work that comes back from a lease of its own was not idle and keeps its key. Idle workers
-- of a queue with a turn that became ready, or that is due earlier than it was, are notified (constant payload).
create or replace function tenants_move_work(p_moves tenants_move[]) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
  v_news text[];
begin
  update tenants_load l set outstanding = l.outstanding + m.outstanding, leased = l.leased + m.leased
  from (select u.tenant_id, coalesce(sum(u.leased), 0)::int as leased, sum(coalesce(u.admitted, 0)
          - coalesce(u.completed, 0) - coalesce(u.failed, 0) - coalesce(u.cancelled, 0))::int as outstanding
        from unnest(p_moves) u group by u.tenant_id) m
  where l.tenant_id = m.tenant_id and (m.outstanding <> 0 or m.leased <> 0);

  with moved as (
    select t.tenant_id, t.queue, t.blocked as was, t.wake_at as was_wake_at, l.leased < l.guaranteed_leases as below_floor,
      coalesce(m.leased < 0 and m.queued > 0, false) as came_back,
      t.queued + coalesce(m.queued, 0) as queued, t.waiting + coalesce(m.waiting, 0) as waiting,
      t.key + coalesce(m.key, 0) as key, coalesce(m.expected_us, t.expected_us) as expected_us,
      t.completed + coalesce(m.completed, 0) as completed, t.failed + coalesce(m.failed, 0) as failed,
      t.cancelled + coalesce(m.cancelled, 0) as cancelled,
      case when coalesce(m.queued, 0) = 0 then t.next_due_at when m.queued < 0 or t.queued = 0 then m.next_due_at
        else least(t.next_due_at, m.next_due_at) end as next_due_at,
      case when coalesce(m.waiting, 0) = 0 then t.wake_at when m.waiting < 0 then m.wake_at
        else least(t.wake_at, m.wake_at) end as wake_at,
      tenants_turn_blocked(t.blocked, t.queued + coalesce(m.queued, 0), t.waiting + coalesce(m.waiting, 0),
        l.leased, l.max_leases, l.frozen) as blocked
    from tenants_turn t join tenants_load l on l.tenant_id = t.tenant_id
    left join unnest(p_moves) m on m.tenant_id = t.tenant_id and m.queue = t.queue
    where t.tenant_id in (select u.tenant_id from unnest(p_moves) u)),
  changed as (
    update tenants_turn t set queued = m.queued, waiting = m.waiting, blocked = m.blocked, below_floor = m.below_floor,
      key = case when m.was <> 0 and m.blocked = 0 and not m.came_back then greatest(m.key, tenants_queue_clock(t.queue)) else m.key end,
      expected_us = m.expected_us, next_due_at = m.next_due_at, wake_at = m.wake_at, completed = m.completed,
      failed = m.failed, cancelled = m.cancelled
    from moved m where t.tenant_id = m.tenant_id and t.queue = m.queue
      and (t.queued, t.waiting, t.blocked, t.below_floor, t.key, t.expected_us, t.next_due_at, t.wake_at, t.completed,
        t.failed, t.cancelled) is distinct from (m.queued, m.waiting, m.blocked, m.below_floor, m.key, m.expected_us,
        m.next_due_at, m.wake_at, m.completed, m.failed, m.cancelled)
    returning t.queue, m.was <> 0 and m.blocked = 0 or m.wake_at < coalesce(m.was_wake_at, 'infinity') as is_news)
  select array_agg(distinct c.queue) into v_news from changed c where c.is_news;
  if v_news is not null then
    perform tenants_wake(v_news);
  end if;
end $$;
