-- The lowest turn key that the last claim of a queue served (a sequence: no lock, no bloat); 0 before the first one.
create or replace function tenants_queue_clock(p_queue text) returns bigint
language sql volatile set search_path = pg_catalog, public, pg_temp as $$
  select coalesce(pg_sequence_last_value(format('%I', 'tenants_clock_' || p_queue)::regclass), 0)
$$;
