-- Make waiting tasks of one queue whose time has come ready: at most 100 turns and 500 tasks a call, shared among the
-- turns; who has more due goes behind those that have waited for their first share. A tenant whose timers are frozen
-- (mask 4) loses his wake time instead, so that he can't stand before others; unfreezing renews it. Turns stopped by a
-- fault are passed over. p_only restricts the call to these tenants. Answers how many, or null where it locked nobody.
-- Lock order: load (SKIP LOCKED), task, turn through tenants_move_work. Waits for nobody.
create or replace function workflows_promote_due(p_queue text, p_only uuid[] default null) returns int
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_tenants uuid[];
  v_each int;
  v_now timestamptz := ductor_now();
  v_moves tenants_move[];
  v_total int;
begin
  -- Five times as many turns are looked at as are taken: locked ones at the front hide nobody.
  select array_agg(d.tenant_id) into v_tenants from (
    select l.tenant_id from (select t.tenant_id, t.wake_at from tenants_turn t
      where t.queue = p_queue and t.wake_at <= v_now and t.blocked & 64 = 0
        and (p_only is null or t.tenant_id = any(p_only))
      order by t.wake_at limit 500) w join tenants_load l on l.tenant_id = w.tenant_id
    order by w.wake_at limit 100 for no key update of l skip locked) d;
  if v_tenants is null then
    return null;
  end if;
  v_now := ductor_now();
  v_each := 500 / cardinality(v_tenants);
  update tenants_turn t set wake_at = null from tenants_load l
  where l.tenant_id = t.tenant_id and t.tenant_id = any(v_tenants) and t.queue = p_queue and l.frozen & 4 <> 0;
  with due as materialized (
    select k.tenant_id, k.id from tenants_load l cross join lateral (
      select t.tenant_id, t.id from workflows_task t
      where t.tenant_id = l.tenant_id and t.queue = p_queue and t.state = 'waiting' and t.due_at <= v_now
      order by t.due_at limit v_each) k
    where l.tenant_id = any(v_tenants) and l.frozen & 4 = 0),
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
    select greatest(k.due_at, v_now) from workflows_task k
    where k.tenant_id = t.tenant_id and k.queue = p_queue and k.state = 'waiting' order by k.due_at limit 1)
  from tenants_load l
  where l.tenant_id = t.tenant_id and t.tenant_id = any(v_tenants) and t.queue = p_queue and l.frozen & 4 = 0;
  return v_total;
end $$;
