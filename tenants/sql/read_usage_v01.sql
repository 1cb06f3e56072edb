-- A tenant's work by queue: the columns of its turns that are its own figures. The others tell of the fair order, in
-- which everybody's load can be read. Bound: the platform's queues.
create or replace function tenants_read_usage(p_tenant_id uuid)
returns table (queue varchar, queued int, waiting int, completed bigint, failed bigint, cancelled bigint)
language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
begin
  perform tenants_require_scope(p_tenant_id);
  return query
  select t.queue, t.queued, t.waiting, t.completed, t.failed, t.cancelled from tenants_turn t
  where t.tenant_id = p_tenant_id order by t.queue;
end $$;
