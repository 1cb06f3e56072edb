-- Trigger function on workflows_task inserts that are no plain root: parent and root are tasks of the same tenant, and
-- the nesting depth is the parent's plus one; without a parent a task is its own root at depth 0. SQLSTATE 23503, as a foreign key's, but it holds no row: a finished parent may
-- go by itself.
create or replace function workflows_check_lineage() returns trigger
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  if not exists (
    select from workflows_task p where p.tenant_id = new.tenant_id and p.id = new.parent_run_id
      and p.root_run_id = new.root_run_id and p.nesting_depth + 1 = new.nesting_depth) then
    raise exception using errcode = '23503', message = 'the parent of a task must be a task of the same tenant';
  end if;
  return new;
end $$;
