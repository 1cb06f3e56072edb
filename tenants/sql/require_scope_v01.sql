-- Raise TN500 or TN501 unless the transaction is the scope of p_tenant_id. A DEFINER function that acts for one tenant
-- begins with it: being able to call it must not be being able to act for anybody.
create or replace function tenants_require_scope(p_tenant_id uuid) returns void
language plpgsql stable set search_path = pg_catalog, public, pg_temp as $$
declare
  v_current uuid := nullif(current_setting('ductor.tenant_id', true), '')::uuid;
begin
  if v_current is null or p_tenant_id is null then
    perform tenants_raise('TN500', 'No tenant is attached.');
  elsif v_current <> p_tenant_id then
    perform tenants_raise('TN501', 'Another tenant is attached.');
  end if;
end $$;
