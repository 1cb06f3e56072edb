-- Raise the typed refusal for p_count more tasks against a tenant's load row as read by the caller: TN409 without one,
-- TN423 where admission is frozen, WF429 over the limit. The rule stands here once, for the early look and the trigger.
create or replace function workflows_refuse_over_limit(
  p_tenant_id uuid, p_count int, p_outstanding int, p_max_outstanding int, p_frozen int) returns void
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  if p_count = 0 then
    return;
  elsif p_max_outstanding is null then
    perform tenants_raise('TN409', 'This tenant has no policy yet, so it admits nothing; an operator must set one.');
  elsif p_frozen & 1 <> 0 then
    perform tenants_raise('TN423', 'Admission of this tenant is frozen; an operator must lift that.',
      jsonb_build_object('frozen', 'admission'));
  elsif p_outstanding + p_count > p_max_outstanding then
    perform tenants_raise('WF429',
      format('%s more would exceed the limit of %s outstanding tasks; %s are outstanding.',
        p_count, p_max_outstanding, p_outstanding),
      jsonb_build_object('limit', 'max_outstanding', 'scope', 'tenant', 'used', p_outstanding, 'requested', p_count,
        'maximum', p_max_outstanding, 'unit', 'outstanding-tasks', 'retry_after', 5,
        'remedy', 'Wait until tasks finish, cancel some, or ask the operator for a higher limit.'));
  end if;
end $$;
