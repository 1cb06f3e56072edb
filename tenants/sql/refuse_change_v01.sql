-- Trigger function of immutable tables: refuses to every role but the table's owner.
create or replace function tenants_refuse_change() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  if current_user = (select pg_get_userbyid(relowner) from pg_class where oid = tg_relid) then
    return case when tg_op = 'DELETE' then old else new end;
  end if;
  raise exception using errcode = '42501', message = format('rows of %s are immutable', tg_table_name);
end $$;
