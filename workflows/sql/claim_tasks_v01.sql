-- Claim up to p_limit (1..500) tasks of one queue for a worker, in tenant-fair order, each with a lease and a token one
-- higher than any before. First promotes what is due and recovers expired leases that it meets (both bounded).
-- Order: tenants below their guaranteed leases, then the smallest virtual start: the turn's key, plus the charge of
-- the tasks taken before in this batch (start-time fair queueing, Goyal et al. 1996). A tenant gives at most
-- p_per_tenant (1..50) tasks and never more than his lease limit allows; so many tenants are looked at as would fill the
-- batch with ten tasks each, and the virtual starts alone divide it among them.
-- A task that lost a lease (alone) is claimed by itself: its tenant is passed over until it stands first (lease_next).
-- p_only restricts the claim to these tenants and leaves out what comes first (it repeats a batch that raised).
-- The queue's clock, where a turn that becomes ready begins, is the lowest key that was served: so an idle time banks
-- nothing, and a newcomer stands behind nobody's estimated charges. Keys of tenants below their guaranteed leases, who
-- go out of turn, move it only where nobody else is ready.
-- Locks: load rows SKIP LOCKED and only as many as needed, then task, then turn. Where the chosen tenants turn out to
-- be taken by other claims it looks again, and further back, rather than answer a false "empty"; it waits for a load
-- row only while it holds none, and not for long. A turn that says ready while nothing of it is queued is marked (fault).
create or replace function workflows_claim_tasks(
  p_worker text, p_queue text, p_limit int, p_per_tenant int, p_lease_seconds double precision,
  p_only uuid[] default null)
returns table (tenant_id uuid, task_id uuid, token bigint, workflow varchar, version int, key varchar, input jsonb,
  attempt int, failures int, max_failures int, alone boolean, progress jsonb,
  format smallint)
language plpgsql security definer set search_path = pg_catalog, public, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off set lock_timeout = '1s' as $$
declare
  c_breadth constant int := 10;
  v_ready uuid[];
  v_tenants uuid[];
  v_holds boolean := false;
  v_needed int;
  v_now timestamptz := ductor_now();
  v_expires timestamptz;
  v_owners uuid[];
  v_ids uuid[];
  v_moves tenants_move[];
  v_clock bigint;
  v_line bigint;
begin
  perform workflows_check_bounds('A claim', p_limit, 500);
  perform workflows_check_bounds('A claim''s share of one tenant', p_per_tenant, 50);
  if p_only is null and exists (
      select from tenants_turn t where t.queue = p_queue and t.wake_at <= v_now and t.blocked & 64 = 0) then
    v_holds := workflows_promote_due(p_queue) is not null;
  end if;
  if p_only is null and exists (
      select from workflows_task k where k.state = 'leased' and k.lease_expires_at <= v_now and k.queue = p_queue) then
    v_holds := workflows_recover_tasks(100, p_queue) is not null or v_holds;
  end if;
  for v_try in 1..4 loop
    select array_agg(c.tenant_id order by c.n), count(*) filter (where c.places_before < p_limit),
      min(c.key) filter (where not c.below_floor)
    into v_ready, v_needed, v_line from (
      select t.tenant_id, t.key, t.below_floor, row_number() over o as n,
        sum(least(t.queued, p_per_tenant, c_breadth)) over o - least(t.queued, p_per_tenant, c_breadth) as places_before
      from (select r.* from tenants_turn r where r.queue = p_queue and r.blocked = 0
        and (p_only is null or r.tenant_id = any(p_only))
        order by r.below_floor desc, r.key, r.next_due_at, r.tenant_id
        limit case v_try when 1 then p_limit + 32 else 2000 end) t
      window o as (order by t.below_floor desc, t.key, t.next_due_at, t.tenant_id)) c;
    exit when v_ready is null;
    select array_agg(d.tenant_id) into v_tenants from (
      select l.tenant_id from unnest(v_ready) with ordinality u(tenant_id, n)
      join tenants_load l on l.tenant_id = u.tenant_id order by u.n limit v_needed for no key update of l skip locked) d;
    if v_tenants is null and v_try > 1 and not v_holds then
      begin
        perform 1 from tenants_load l where l.tenant_id = v_ready[1] for no key update;
      exception when lock_not_available then
        return;
      end;
      v_tenants := v_ready[1:1];
    end if;
    continue when v_tenants is null;
    v_holds := true;
    v_now := ductor_now();
    v_expires := v_now + make_interval(secs => p_lease_seconds);
    with leased as materialized (
      select * from workflows_lease_next(p_queue, v_tenants, p_limit, p_per_tenant, p_worker, v_now, v_expires)),
    moved as (
      select array_agg(row(m.tenant_id, p_queue, -m.n, 0, m.n, 0, 0, 0, 0, m.charge, null, m.due_at, null)::tenants_move)
        as moves
      from (select p.tenant_id, count(*)::int as n, sum(p.charge)::bigint as charge, max(p.due_at) as due_at
        from leased p group by p.tenant_id) m)
    select array_agg(p.tenant_id order by p.place), array_agg(p.id order by p.place),
      coalesce(min(p.turn_key) filter (where not p.below_floor), v_line, min(p.turn_key)), (select moves from moved)
    into v_owners, v_ids, v_clock, v_moves from leased p;
    exit when v_ids is not null;
    update tenants_turn t set blocked = t.blocked | 64
    where t.tenant_id = any(v_tenants) and t.queue = p_queue and t.blocked = 0 and not exists (
      select from workflows_task k where k.tenant_id = t.tenant_id and k.queue = p_queue and k.state = 'queued');
  end loop;
  if v_ids is null then
    return;
  end if;
  perform tenants_move_work(v_moves);
  perform setval(format('%I', 'tenants_clock_' || p_queue)::regclass, greatest(v_clock, 1));
  return query select k.tenant_id, k.id, k.token, k.workflow, k.version, k.key, k.input, k.attempt, k.failures,
    k.max_failures, k.alone, k.progress, k.format
  from unnest(v_owners, v_ids) with ordinality u(owner, id, place)
  join workflows_task k on k.tenant_id = u.owner and k.id = u.id order by u.place;
end $$;
