-- The state that a leased task goes to with an outcome of this kind (docs/states.md): a retry that counts as a failure
-- ends failed at the last failure allowed.
create or replace function workflows_state_after(
  p_kind text, p_failure boolean, p_failures int, p_max_failures int, p_delay_seconds double precision) returns text
language sql immutable parallel safe as $$
  select case when p_kind in ('completed', 'failed') then p_kind
    when p_failure and p_failures + 1 >= p_max_failures then 'failed'
    when p_delay_seconds > 0 then 'waiting' else 'queued' end
$$;
