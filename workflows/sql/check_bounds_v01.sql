-- Raise WF400 unless p_seen lies in 1..p_maximum: every verb that takes a batch states its bounds.
create or replace function workflows_check_bounds(p_what text, p_seen int, p_maximum int) returns void
language plpgsql immutable set search_path = pg_catalog, public, pg_temp as $$
begin
  if p_seen is null or p_seen not between 1 and p_maximum then
    raise exception using errcode = 'WF400', message = format('%s takes 1 to %s, got %s.', p_what, p_maximum, p_seen),
      detail = jsonb_build_object('minimum', 1, 'maximum', p_maximum, 'seen', p_seen)::text;
  end if;
end $$;
