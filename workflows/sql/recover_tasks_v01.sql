-- Take back tasks whose lease ran out, at most p_limit (1..1000) in one call: queued again, to be claimed alone. Only a
-- task that ran alone counts a failure for it (its neighbours may have been the poison); at max_failures it ends failed.
-- Lock order: load (SKIP LOCKED), task, turn. Waits for nobody. Answers how many were taken back.
create or replace function workflows_recover_tasks(p_limit int) returns int
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_tenants uuid[];
  v_now timestamptz := ductor_now();
  v_moved workflows_task[];
begin
  perform workflows_check_bounds('A recovery', p_limit, 1000);
  select array_agg(d.tenant_id) into v_tenants from (
    select l.tenant_id from tenants_load l where l.tenant_id in (
      select k.tenant_id from workflows_task k where k.state = 'leased' and k.lease_expires_at <= v_now
      order by k.lease_expires_at limit p_limit)
    for no key update skip locked) d;
  if v_tenants is null then
    return 0;
  end if;
  v_now := ductor_now();
  with expired as materialized (
    select k.tenant_id, k.id from workflows_task k
    where k.tenant_id = any(v_tenants) and k.state = 'leased' and k.lease_expires_at <= v_now
    order by k.tenant_id, k.id limit p_limit for no key update skip locked),
  back as (
    update workflows_task k set worker = null, lease_expires_at = null, failures = k.failures + k.alone::int,
      alone = true, reason = 'lease_expired',
      state = case when k.failures + k.alone::int >= k.max_failures then 'failed' else 'queued' end,
      terminal_at = case when k.failures + k.alone::int >= k.max_failures then v_now end,
      error = case when k.failures + k.alone::int >= k.max_failures then jsonb_build_object('class', 'LeaseExpired',
        'message', 'The worker died or hung while it ran this task alone, as often as failures are allowed.')
        else k.error end
    from expired e where k.tenant_id = e.tenant_id and k.id = e.id and k.state = 'leased' and k.lease_expires_at <= v_now
    returning k)
  select array_agg(b.k) into v_moved from back b;
  if v_moved is null then
    return 0;
  end if;
  perform workflows_count_returned(v_moved);
  return cardinality(v_moved);
end $$;
