-- Set the limits that a tenant gives itself below the operator's; null lifts one. Returns the new version. Raises TN409
-- without a policy and TN430 where the policy is no longer at p_version. Lock order: load, then turn. Bound: one tenant.
create or replace function tenants_set_own_policy(
  p_tenant_id uuid, p_own_max_outstanding int, p_own_max_leases int, p_version int) returns int
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  v_now timestamptz;
  v_version int;
begin
  perform tenants_require_scope(p_tenant_id);
  perform from tenants_load l where l.tenant_id = p_tenant_id for no key update;
  v_now := ductor_now();
  select p.version into v_version from tenants_policy p where p.tenant_id = p_tenant_id;
  if v_version is null then
    perform tenants_raise('TN409', 'This tenant has no policy yet; an operator must set one.');
  end if;
  if v_version <> p_version then
    perform tenants_raise('TN430', 'The policy has changed since it was read.',
      jsonb_build_object('current', v_version));
  end if;
  update tenants_policy set own_max_outstanding = p_own_max_outstanding, own_max_leases = p_own_max_leases,
    version = version + 1, updated_at = v_now
  where tenant_id = p_tenant_id;
  perform tenants_hold_limits(p_tenant_id);
  return v_version + 1;
end $$;
