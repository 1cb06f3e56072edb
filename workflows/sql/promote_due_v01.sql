-- Make waiting tasks of one queue whose time has come ready: at most 100 turns and 500 tasks a call. A tenant whose
-- timers are frozen (mask 4) loses his wake time instead, so that he can't stand before others; unfreezing renews it.
-- Lock order: load (SKIP LOCKED), task, turn through tenants_move_work. Waits for nobody.
create or replace function workflows_promote_due(p_queue text) returns int
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_tenants uuid[];
  v_now timestamptz := ductor_now();
  v_moves tenants_move[];
  v_total int;
begin
  select array_agg(d.tenant_id) into v_tenants from (
    select l.tenant_id from (select t.tenant_id from tenants_turn t where t.queue = p_queue and t.wake_at <= v_now
      order by t.wake_at limit 100) w join tenants_load l on l.tenant_id = w.tenant_id
    for no key update of l skip locked) d;
  if v_tenants is null then
    return 0;
  end if;
  v_now := ductor_now();
  update tenants_turn t set wake_at = null from tenants_load l
  where l.tenant_id = t.tenant_id and t.tenant_id = any(v_tenants) and t.queue = p_queue and l.frozen & 4 <> 0;
  with due as materialized (
    select k.tenant_id, k.id from tenants_load l cross join lateral (
      select t.tenant_id, t.id from workflows_task t
      where t.tenant_id = l.tenant_id and t.queue = p_queue and t.state = 'waiting' and t.due_at <= v_now
      order by t.due_at limit 500) k
    where l.tenant_id = any(v_tenants) and l.frozen & 4 = 0 limit 500),
  ready as (
    update workflows_task t set state = 'queued', reason = null from due
    where t.tenant_id = due.tenant_id and t.id = due.id and t.state = 'waiting'
    returning t.tenant_id, t.due_at),
  moved as (select r.tenant_id, count(*)::int as n, min(r.due_at) as next_due_at from ready r group by r.tenant_id)
  select array_agg(row(m.tenant_id, p_queue, m.n, -m.n, 0, 0, 0, 0, 0, 0, null, m.next_due_at, null)::tenants_move),
    coalesce(sum(m.n), 0)
  into v_moves, v_total from moved m;
  if v_total > 0 then
    perform tenants_move_work(v_moves);
  end if;
  update tenants_turn t set wake_at = (
    select min(k.due_at) from workflows_task k
    where k.tenant_id = t.tenant_id and k.queue = p_queue and k.state = 'waiting')
  from tenants_load l
  where l.tenant_id = t.tenant_id and t.tenant_id = any(v_tenants) and t.queue = p_queue and l.frozen & 4 = 0;
  return v_total;
end $$;
