-- In how many seconds the next schedule of any tenant that is not due yet will be; null where there is none.
create or replace function q2_next_schedule() returns table (seconds double precision)
language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
declare
  v_now timestamptz := ductor_now();
begin
  return query
  select extract(epoch from min(s.next_run) - v_now)::double precision from django_q_schedule s
  where s.repeats <> 0 and s.next_run >= v_now;
end $$;
