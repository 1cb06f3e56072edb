-- Bring a tenant's load row and turns to its policy: of the operator's limits and the tenant's own, the lower ones
-- hold. The caller holds the load row. Lock order: load, then turn. Bound: one tenant.
create or replace function tenants_hold_limits(p_tenant_id uuid) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  -- least() passes over null, which stands for no limit of the tenant's own.
  update tenants_load l set max_outstanding = least(p.max_outstanding, p.own_max_outstanding),
    max_leases = least(p.max_leases, p.own_max_leases),
    guaranteed_leases = least(p.guaranteed_leases, p.own_max_leases)
  from tenants_policy p where l.tenant_id = p_tenant_id and p.tenant_id = p_tenant_id;
  perform tenants_move_work(array[jsonb_populate_record(null::tenants_move,
    jsonb_build_object('tenant_id', p_tenant_id))]);
end $$;
