-- Due schedules of all tenants but those in p_held, at most p_limit: each tenant's earliest before any tenant's second,
-- so that nobody's many hold up another's one. Answers who and which, and nothing of what stands in them.
create or replace function q2_due_schedules(p_limit int, p_held uuid[]) returns table (tenant_id uuid, schedule_id int)
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  v_now timestamptz := ductor_now();
begin
  return query
  select d.tenant_id, d.id from (
    select s.tenant_id, s.id, s.next_run,
      row_number() over (partition by s.tenant_id order by s.next_run, s.id) as place
    from django_q_schedule s
    where s.repeats <> 0 and s.next_run < v_now and s.tenant_id <> all(p_held)) d
  order by d.place, d.next_run, d.tenant_id
  limit least(greatest(p_limit, 0), 1000);
end $$;
