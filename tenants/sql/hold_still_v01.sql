-- Take a tenant's latch for an act that replaces what it works on: until the transaction ends nothing of it is admitted,
-- claimed, finished or cancelled. Raises TN409 without a policy and TN432 unless its admission and claims are frozen.
-- Lock order: load, before all else. Bound: one tenant.
create or replace function tenants_hold_still(p_tenant_id uuid) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
declare
  v_frozen int;
begin
  perform tenants_require_scope(p_tenant_id);
  select l.frozen into v_frozen from tenants_load l where l.tenant_id = p_tenant_id for no key update;
  if v_frozen is null then
    perform tenants_raise('TN409', 'This tenant has no policy yet; an operator must set one.');
  elsif v_frozen & 3 <> 3 then
    perform tenants_raise('TN432', 'The tenant''s admission and claims must be frozen first.',
      jsonb_build_object('frozen', v_frozen));
  end if;
end $$;
