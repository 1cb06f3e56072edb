-- Raise a typed refusal: the SQLSTATE of an error class, its message, and its fields as JSON in DETAIL.
create or replace function tenants_raise(p_sqlstate text, p_message text, p_fields jsonb default '{}') returns void
language plpgsql as $$
begin
  raise exception using errcode = p_sqlstate, message = p_message, detail = p_fields::text;
end $$;
