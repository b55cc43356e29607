-- SPDX-License-Identifier: MIT
pragma journal_mode = wal;
pragma synchronous = off;
create table t(id integer primary key, k text, v blob, n real);
with recursive c(i) as (select 1 union all select i + 1 from c where i < 150000)
insert into t select i, 'k' || (i * 7919 % 10007), zeroblob(i % 300), i / 7.0 from c;
create index by_k on t(k);
create index by_n on t(n, k);
select count(*), sum(length(v)), round(sum(n), 3) from t;
select k, count(*) c, max(id) from t group by k order by c desc, k limit 5;
select count(*) from t a join t b on a.k = b.k where a.id < b.id and a.id % 50 = 0;
update t set k = k || 'x', v = zeroblob(length(v) * 2) where id % 3 = 0;
delete from t where id % 7 = 0;
create virtual table f using fts5(body);
insert into f select 'word' || (id % 997) || ' and word' || (id % 89) from t limit 30000;
select count(*) from f where f match 'word17';
select json_group_array(id) from (select id from t order by n desc limit 20);
with recursive r(x, s) as (select 1, 'a' union all select x + 1, s || 'b' from r where x < 2000)
select max(length(s)) from r;
vacuum;
pragma integrity_check;
select count(*), sum(length(v)) from t;
.dump f
