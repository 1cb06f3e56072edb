-- Move the counters by what a claim leased: per tenant, places taken, the charge, and the due time of what stands next.
create or replace function workflows_count_claimed(p_queue text, p_taken workflows_task[]) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  perform tenants_move_work((
    select array_agg(row(m.tenant_id, p_queue, -m.n, 0, m.n, 0, 0, 0, 0, m.charge, null, m.next_due_at, null)::tenants_move)
    from (
      select k.tenant_id, count(*)::int as n, sum(k.charged_us)::bigint as charge, max(k.due_at) as next_due_at
      from unnest(p_taken) k group by k.tenant_id) m));
end $$;
