-- The bits that say why a turn can't be taken: 1 empty, 2 not_due, 4 limit, 8 frozen; the others (16 budget, 32 rate,
-- 64 fault) are kept as they are. `frozen` is the tenant's freeze mask, in which 2 means claims.
create or replace function tenants_turn_blocked(
  p_blocked int, p_queued int, p_waiting int, p_leased int, p_max_leases int, p_frozen int) returns smallint
language sql immutable parallel safe as $$
  select ((p_blocked & ~15)
    | case when p_queued > 0 then 0 when p_waiting > 0 then 2 else 1 end
    | case when p_leased >= p_max_leases then 4 else 0 end
    | case when p_frozen & 2 <> 0 then 8 else 0 end)::smallint
$$;
