-- Set or clear the turn bit 64 (fault) of a tenant whose batch raised alone: one tenant's bad row must not stop others.
-- A turn that becomes ready by it gets max(own key, clock), as any other, and idle workers hear of it.
-- Lock order: load, turn.
create or replace function workflows_mark_fault(p_tenant_id uuid, p_queue text, p_faulty boolean) returns void
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  v_ready boolean;
begin
  perform 1 from tenants_load l where l.tenant_id = p_tenant_id for no key update;
  update tenants_turn t set blocked = case when p_faulty then t.blocked | 64 else t.blocked & ~64 end,
    key = case when not p_faulty and t.blocked = 64 then greatest(t.key, tenants_queue_clock(p_queue)) else t.key end
  where t.tenant_id = p_tenant_id and t.queue = p_queue
  returning not p_faulty and t.blocked = 0 into v_ready;
  if v_ready then
    perform tenants_wake(array[p_queue]);
  end if;
end $$;
