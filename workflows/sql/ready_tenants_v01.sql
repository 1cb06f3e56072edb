-- The tenants whose turns stand ready in a queue, in fair order, at most p_limit: for repeating a claim one by one.
create or replace function workflows_ready_tenants(p_queue text, p_limit int) returns table (tenant_id uuid)
language sql stable security definer set search_path = pg_catalog, public, pg_temp as $$
  select t.tenant_id from tenants_turn t where t.queue = p_queue and t.blocked = 0
  order by t.below_floor desc, t.key, t.next_due_at, t.tenant_id limit p_limit
$$;
