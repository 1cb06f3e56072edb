-- Set or clear the turn bit 64 (fault) of a tenant whose batch raised alone: one tenant's bad row must not stop others.
-- Lock order: load, turn.
create or replace function workflows_mark_fault(p_tenant_id uuid, p_queue text, p_faulty boolean) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  perform 1 from tenants_load l where l.tenant_id = p_tenant_id for no key update;
  update tenants_turn t set blocked = case when p_faulty then t.blocked | 64 else t.blocked & ~64 end
  where t.tenant_id = p_tenant_id and t.queue = p_queue;
end $$;
