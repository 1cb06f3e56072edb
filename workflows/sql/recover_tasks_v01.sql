-- Take back tasks whose lease ran out, at most p_limit (1..1000) in one call: queued again, to be claimed alone. Only a
-- task that ran alone counts a failure for it (its neighbours may have been the poison), and is charged for the whole
-- lease; at max_failures it ends failed.
-- p_queue and p_only restrict the call; turns stopped by a fault are passed over.
-- Lock order: load (SKIP LOCKED), task, turn. Waits for nobody. Answers how many were taken back, or null where it
-- locked nobody.
create or replace function workflows_recover_tasks(
  p_limit int, p_queue text default null, p_only uuid[] default null) returns int
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_tenants uuid[];
  v_now timestamptz := ductor_now();
  v_moves tenants_move[];
begin
  perform workflows_check_bounds('A recovery', p_limit, 1000);
  -- A hundred times as many leases are looked at as are taken back: those of locked tenants at the front hide nobody's.
  select array_agg(d.tenant_id) into v_tenants from (
    select l.tenant_id from (
      select x.tenant_id, min(x.lease_expires_at) as first_at from (
        select k.tenant_id, k.queue, k.lease_expires_at from workflows_task k
        where k.state = 'leased' and k.lease_expires_at <= v_now and (p_queue is null or k.queue = p_queue)
          and (p_only is null or k.tenant_id = any(p_only))
        order by k.lease_expires_at limit p_limit * 100) x
      join tenants_turn t on t.tenant_id = x.tenant_id and t.queue = x.queue and t.blocked & 64 = 0
      group by x.tenant_id) e
    join tenants_load l on l.tenant_id = e.tenant_id
    order by e.first_at limit p_limit for no key update of l skip locked) d;
  if v_tenants is null then
    return null;
  end if;
  v_now := ductor_now();
  with expired as materialized (
    select k.tenant_id, k.id, k.alone as ran_alone, l.weight from workflows_task k
    join tenants_load l on l.tenant_id = k.tenant_id
    join tenants_turn t on t.tenant_id = k.tenant_id and t.queue = k.queue and t.blocked & 64 = 0
    where k.tenant_id = any(v_tenants) and k.state = 'leased' and k.lease_expires_at <= v_now
      and (p_queue is null or k.queue = p_queue)
    order by k.lease_expires_at limit p_limit for no key update of k skip locked),
  back as (
    update workflows_task k set worker = null, lease_expires_at = null, failures = k.failures + k.alone::int,
      alone = true, reason = 'lease_expired',
      state = case when k.failures + k.alone::int >= k.max_failures then 'failed' else 'queued' end,
      terminal_at = case when k.failures + k.alone::int >= k.max_failures then v_now end,
      error = case when k.failures + k.alone::int >= k.max_failures then jsonb_build_object('class', 'LeaseExpired',
        'message', 'The worker died or hung while it ran this task alone, as often as failures are allowed.')
        else k.error end
    from expired e where k.tenant_id = e.tenant_id and k.id = e.id and k.state = 'leased' and k.lease_expires_at <= v_now
    returning workflows_returned(k.tenant_id, k.queue, k.state, k.due_at, case when e.ran_alone
      then greatest(1000, extract(epoch from v_now - k.claimed_at) * 1000000)::bigint / e.weight - k.charged_us
      else 0 end, null) as move)
  select array_agg(b.move) into v_moves from back b;
  if v_moves is null then
    return 0;
  end if;
  perform workflows_count_moves(v_moves);
  return cardinality(v_moves);
end $$;
