-- Pick and lease the next tasks of tenants whose load rows the caller has locked (the claim's inner statement; the lock
-- came in an earlier one, so this snapshot sees all that the lock protects). Answers the leased tasks, their place in
-- the fair order, the key of their turn as it was served, and whether its tenant was below his guaranteed leases.
create or replace function workflows_lease_next(
  p_queue text, p_tenant_id uuid[], p_limit int, p_each int, p_worker text, p_now timestamptz, p_expires timestamptz)
returns table (tenant_id uuid, id uuid, place bigint, charge bigint, due_at timestamptz, turn_key bigint,
  below_floor boolean)
language plpgsql set search_path = pg_catalog, public, pg_temp as $$
begin
  return query
  with heads as materialized (
    select k.tenant_id, k.id, k.alone, k.due_at, k.rank, t.next_due_at, l.leased + k.rank - 1 < l.guaranteed_leases as below_floor,
      greatest(t.expected_us, 1000) / l.weight as charge, t.key as turn_key, t.below_floor as turn_below_floor,
      t.key + (k.rank - 1) * (greatest(t.expected_us, 1000) / l.weight) as virtual_start
    from tenants_turn t join tenants_load l on l.tenant_id = t.tenant_id cross join lateral (
      select q.tenant_id, q.id, q.alone, q.due_at,
        row_number() over (order by q.partition, q.priority desc, q.due_at, q.id) as rank
      from workflows_task q where q.tenant_id = t.tenant_id and q.queue = p_queue and q.state = 'queued'
      order by q.partition, q.priority desc, q.due_at, q.id limit greatest(least(l.max_leases - l.leased, p_each), 0)) k
    where t.tenant_id = any(p_tenant_id) and t.queue = p_queue and t.blocked = 0),
  -- A task to be run alone shares no batch. It is taken where it stands first, or would if nobody were below his floor:
  -- else tenants who always are would keep it waiting for ever, while others share the rest of each batch.
  lonely as materialized (
    select f.tenant_id, f.id from (
      select h.* from heads h order by h.virtual_start, h.next_due_at, h.tenant_id, h.rank limit 1) f where f.alone),
  placed as (
    select h.*, row_number() over o as place, first_value(h.alone) over o as first_alone,
      bool_or(h.alone and h.rank = 1) over (partition by h.tenant_id) as head_alone
    from heads h window o as (order by h.below_floor desc, h.virtual_start, h.next_due_at, h.tenant_id, h.rank)),
  picked as materialized (
    select p.* from placed p
    where case when p.first_alone then p.place = 1
      when exists (select from lonely) then (p.tenant_id, p.id) = (select y.tenant_id, y.id from lonely y)
      else not p.head_alone and not p.alone end
    order by p.place limit p_limit)
  update workflows_task k set state = 'leased', reason = null, worker = p_worker, token = k.token + 1,
    attempt = k.attempt + 1, claimed_at = p_now, started_at = coalesce(k.started_at, p_now),
    lease_expires_at = p_expires, charged_us = p.charge
  from picked p where k.tenant_id = p.tenant_id and k.id = p.id and k.state = 'queued'
  returning k.tenant_id, k.id, p.place, p.charge, p.due_at, p.turn_key, p.turn_below_floor;
end $$;
