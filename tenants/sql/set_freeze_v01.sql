-- Set a tenant's freeze mask (1 admission, 2 claims, 4 timers, 8 signals) and the bits that follow; returns the mask
-- before. Raises TN409 where the tenant has no policy. Lock order: load, then turn. Bound: one tenant.
create or replace function tenants_set_freeze(p_tenant_id uuid, p_frozen int) returns int
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  v_before int;
  v_now timestamptz;
  v_queues text[];
begin
  perform tenants_require_scope(p_tenant_id);
  select l.frozen into v_before from tenants_load l where l.tenant_id = p_tenant_id for no key update;
  if v_before is null then
    perform tenants_raise('TN409', 'This tenant has no policy yet; an operator must set one.');
  end if;
  update tenants_load set frozen = p_frozen where tenant_id = p_tenant_id;
  if v_before & 4 <> 0 and p_frozen & 4 = 0 then
    -- Promotion forgot the wake time of a turn whose timers are frozen; due at once, it works the true one out again.
    v_now := ductor_now();
    with renewed as (
      update tenants_turn t set wake_at = v_now where t.tenant_id = p_tenant_id and t.waiting > 0 returning t.queue)
    select array_agg(r.queue) into v_queues from renewed r;
    if v_queues is not null then
      perform tenants_wake(v_queues);
    end if;
  end if;
  perform tenants_move_work(array[jsonb_populate_record(null::tenants_move,
    jsonb_build_object('tenant_id', p_tenant_id))]);
  return v_before;
end $$;
