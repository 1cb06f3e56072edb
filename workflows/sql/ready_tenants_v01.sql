-- The tenants of a queue whose turns stand ready (in fair order), have timers due, or hold expired leases, at most
-- p_limit: for repeating what raised for all of them one by one. Turns stopped by a fault are not among them.
create or replace function workflows_ready_tenants(p_queue text, p_what text, p_limit int)
returns table (tenant_id uuid)
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_now timestamptz := ductor_now();
begin
  if p_what = 'ready' then
    return query select t.tenant_id from tenants_turn t where t.queue = p_queue and t.blocked = 0
    order by t.below_floor desc, t.key, t.next_due_at, t.tenant_id limit p_limit;
  elsif p_what = 'due' then
    return query select t.tenant_id from tenants_turn t
    where t.queue = p_queue and t.wake_at <= v_now and t.blocked & 64 = 0 order by t.wake_at limit p_limit;
  else
    return query select t.tenant_id from tenants_turn t where t.queue = p_queue and t.blocked & 64 = 0
    and t.tenant_id in (select k.tenant_id from workflows_task k
      where k.queue = p_queue and k.state = 'leased' and k.lease_expires_at <= v_now) limit p_limit;
  end if;
end $$;
