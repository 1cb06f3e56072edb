-- Figures for metrics by service class and queue: counters and the age of the oldest queued work, never a tenant's id.
create or replace function workflows_measure_classes()
returns table (service_class varchar, queue varchar, queued bigint, waiting bigint, leased bigint,
  completed bigint, failed bigint, cancelled bigint, oldest_queued_seconds double precision, faults bigint)
language plpgsql stable security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  v_now timestamptz := ductor_now();
begin
  return query
  with leases as (
    select k.tenant_id, k.queue, count(*) as n from workflows_task k where k.state = 'leased'
    group by k.tenant_id, k.queue)
  select n.service_class, t.queue, sum(t.queued), sum(t.waiting), coalesce(sum(k.n), 0)::bigint, sum(t.completed)::bigint,
    sum(t.failed)::bigint, sum(t.cancelled)::bigint,
    coalesce(max(extract(epoch from v_now - t.next_due_at)) filter (where t.queued > 0), 0)::double precision,
    count(*) filter (where t.blocked & 64 <> 0)
  from tenants_turn t join tenants_tenant n on n.id = t.tenant_id
  left join leases k on k.tenant_id = t.tenant_id and k.queue = t.queue
  group by n.service_class, t.queue;
end $$;
