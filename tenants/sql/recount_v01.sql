-- Set a tenant's counters to what was counted: p_work holds one tenants_move for each queue that it has tasks in, with
-- numbers instead of deltas. Queues without an element have nothing. A turn keeps its key, or gets the queue's clock where
-- that is further on, so that nobody's place in the fair order gets better; a fault stays until it is lifted.
-- Lock order: the caller holds the load row; turns follow. Bound: one tenant.
create or replace function tenants_recount(p_tenant_id uuid, p_work tenants_move[]) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
  v_queues text[];
begin
  update tenants_load l set leased = c.leased, outstanding = c.outstanding
  from (select coalesce(sum(w.leased), 0)::int as leased,
      coalesce(sum(w.queued + w.waiting + w.leased), 0)::int as outstanding from unnest(p_work) w) c
  where l.tenant_id = p_tenant_id;
  insert into tenants_turn (tenant_id, queue, id, key, blocked, below_floor, queued, waiting, expected_us, completed,
    failed, cancelled)
  select p_tenant_id, w.queue, gen_random_uuid(), 0, 1, false, 0, 0, 100000, 0, 0, 0 from unnest(p_work) w
  on conflict (tenant_id, queue) do nothing;
  update tenants_turn t set key = greatest(t.key, tenants_queue_clock(t.queue)), queued = coalesce(w.queued, 0),
    waiting = coalesce(w.waiting, 0), next_due_at = w.next_due_at, wake_at = w.wake_at,
    completed = coalesce(w.completed, 0), failed = coalesce(w.failed, 0), cancelled = coalesce(w.cancelled, 0)
  from tenants_turn o left join unnest(p_work) w on w.queue = o.queue
  where o.tenant_id = p_tenant_id and t.tenant_id = o.tenant_id and t.queue = o.queue;
  perform tenants_move_work(array[jsonb_populate_record(null::tenants_move,
    jsonb_build_object('tenant_id', p_tenant_id))]);
  select array_agg(t.queue) into v_queues from tenants_turn t where t.tenant_id = p_tenant_id and t.wake_at is not null;
  if v_queues is not null then
    perform tenants_wake(v_queues);
  end if;
end $$;
