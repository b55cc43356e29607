create table t as select i as id, 'k' || (i * 7919::bigint % 10007) as k, repeat('v', i % 200) as v,
	i / 7.0 as n from generate_series(1, 100000) i;
create index on t(k);
create index on t using gin (string_to_array(v, 'x'));
analyze t;
create function loop_it(n int) returns bigint language plpgsql as $$
declare s bigint := 0; a int[] := '{}';
begin
	for i in 1..n loop a := a || i; s := s + array_length(a, 1); end loop;
	return s;
end $$;
update t set v = v || 'more' where id % 3 = 0;
delete from t where id % 7 = 0;
vacuum full t;
-- ask
select count(*), sum(length(v)), round(sum(n), 3) from t;
select k, count(*) c, max(id) from t group by k order by c desc, k limit 5;
select count(*) from t a join t b on a.k = b.k where a.id < b.id;
set enable_hashjoin = off;
set work_mem = '256kB';
select count(*) from t a join t b using (k) where a.id % 20 = 0;
select md5(string_agg(v, ',' order by id)) from t;
select loop_it(2000);
select jsonb_array_length(jsonb_agg(to_jsonb(t) order by id)) from t where id < 20000;
select xid, count(*) from (select length(regexp_replace(v, 'v{3}', 'w', 'g')) xid from t) s
	group by 1 order by 1 limit 10;
with recursive r(x, s) as (select 1, 'a' union all select x + 1, s || 'b' from r where x < 1000)
select max(length(s)) from r;
select sum(abalance) is not null, count(*) from pgbench_accounts;
