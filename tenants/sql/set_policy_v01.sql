-- Set a tenant's limits: the policy row, the load row that holds counters to them, and the bits that follow. The
-- tenant's own, lower limits stay. Raises TN404 for a tenant that is not there. Running leases stay; new ones are
-- refused until the use is below. Lock order: load, then turn. Bound: one tenant.
create or replace function tenants_set_policy(
  p_tenant_id uuid, p_max_outstanding int, p_max_leases int, p_weight int, p_guaranteed_leases int) returns int
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  v_now timestamptz;
  v_version int;
begin
  perform tenants_require_scope(p_tenant_id);
  if not exists (select from tenants_tenant t where t.id = p_tenant_id) then
    perform tenants_raise('TN404', 'There is no such tenant.');
  end if;
  -- Locks the load row before the tenant's own limits are read: both may be set at once.
  insert into tenants_load (tenant_id, outstanding, leased, max_outstanding, max_leases, weight, guaranteed_leases, frozen)
  values (p_tenant_id, 0, 0, p_max_outstanding, p_max_leases, p_weight, p_guaranteed_leases, 0)
  on conflict (tenant_id) do update set weight = excluded.weight;
  v_now := ductor_now();
  insert into tenants_policy (tenant_id, max_outstanding, max_leases, weight, guaranteed_leases, version, updated_at)
  values (p_tenant_id, p_max_outstanding, p_max_leases, p_weight, p_guaranteed_leases, 1, v_now)
  on conflict (tenant_id) do update set max_outstanding = excluded.max_outstanding, max_leases = excluded.max_leases,
    weight = excluded.weight, guaranteed_leases = excluded.guaranteed_leases, version = tenants_policy.version + 1,
    updated_at = excluded.updated_at
  returning version into v_version;
  perform tenants_hold_limits(p_tenant_id);
  return v_version;
end $$;
