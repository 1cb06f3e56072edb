-- The one clock. Nothing else says now(): that is frozen at the transaction's start, and a lease must not be.
-- Tests replace this body; production has no test branch.
create or replace function ductor_now() returns timestamptz
language sql volatile parallel safe as $$ select clock_timestamp() $$;
