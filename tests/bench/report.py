# SPDX-License-Identifier: MIT
"""Turns what `bench` measured into Markdown tables."""
import math
from statistics import median

import compared

OWN = "numaslab"
BUDGETS = {"malloc16": 18, "free16": 20}  # instructions on one node
T3_TARGETS = {"take": 96.0, "half": 54.8, "again": 96.0}


def geomean(values):
    values = [v for v in values if v and v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def number(value, digits=None):
    if value is None:
        return "-"
    if digits is None:
        digits = 0 if value >= 1000 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def table(head, lines):
    out = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(out + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def medians(row, key):
    return {a: median(s[key] for s in samples) for a, samples in row["samples"].items()
            if samples and a != "control"}


def spread(result):
    """The typical half-width of a row's samples, relative to their median."""
    widths = []
    for row in result["rows"].values():
        for samples in row["samples"].values():
            v = [s[row["metric"]] for s in samples]
            if len(v) > 2 and median(v):
                widths.append((max(v) - min(v)) / 2 / median(v))
    return median(widths) if widths else None


def best_peer(values, among=None):
    peers = {a: v for a, v in values.items() if a not in ("glibc", OWN)
             and (among is None or a in among) and not a.startswith(OWN)}
    return min(peers, key=peers.get) if peers else None


def ratio(row, key, a, b):
    """Median of the rounds' own ratios: within a round a and b ran one after the other, so what
    slowed the machine down for a while slowed both."""
    pairs = zip(row["samples"].get(a, []), row["samples"].get(b, []))
    ratios = [x[key] / y[key] for x, y in pairs if y[key]]
    return median(ratios) if ratios else None


def scale_of(kind):
    """Samples of the micro program are in ns, of programs in s, of start-up shown in us."""
    return {"micro": 1, "real": 1000, "start": 1e6}[kind]


UNIT = {"micro": "ns per operation", "real": "ms", "start": "us"}


def told(ratio, interval):
    """A ratio; behind ~ where its 95 % interval holds 1."""
    if ratio is None or not interval or None in interval:
        return number(ratio, 2)
    return ("~" if interval[0] <= 0 <= interval[1] else "") + number(ratio, 2)


def own_ratio(result, name, figure, peer):
    """Ratio of numaslab over glibc (peer "glibc") or a peer, with the interval that compare found."""
    row = result["rows"][name]
    ratio_ = ratio(row, figure, OWN, peer)
    document = result["comparisons"][name]
    if ratio_ is None or document["after"]["name"] != OWN:
        return ratio_, None
    found = compared.metric(document, row["figures"][figure][0],
                            None if peer == document["before"]["name"] else peer)
    return ratio_, found and found["interval"]


def row_text(result, name):
    """One line about a row just run."""
    if result["base"]:
        return judged_text(result, name)
    row = prepare(result)["rows"][name]
    values, scale = medians(row, row["metric"]), scale_of(row["kind"])
    out = [f"{a} {number(values[a] * scale)}" for a in result["allocators"] if a in values]
    best = best_peer(values)
    for peer in [p for p in ("glibc", best) if p in values and OWN in values]:
        out.append(f"{told(*own_ratio(result, name, row['metric'], peer))} of {peer}")
    return f"{UNIT[row['kind']]}: " + ", ".join(out)


def time_table(result, kind):
    names = list(result["allocators"])
    own, lines, per_glibc, per_best = OWN in names, [], {a: [] for a in names}, []
    for name, row in result["rows"].items():
        if row["kind"] != kind:
            continue
        key = row["metric"]
        values = medians(row, key)
        best = best_peer(values)
        line = [name] + [number(values.get(a) and values[a] * scale_of(kind)) for a in names]
        for a in names:
            per_glibc[a].append(ratio(row, key, a, "glibc"))
        if own:
            per_best.append(ratio(row, key, OWN, best))
            line += [told(*own_ratio(result, name, key, "glibc")),
                     told(*own_ratio(result, name, key, best))]
        lines.append(line + [best or "-", number(ratio(row, key, "control",
                                                       result["comparisons"][name]["before"]["name"]), 2)])
    if not lines:
        return ""
    mean = ["*geometric mean over glibc*"] + [number(geomean(per_glibc[a]), 2) for a in names]
    if own:
        mean += [number(geomean(per_glibc[OWN]), 2), number(geomean(per_best), 2)]
    head = [UNIT[kind]] + names + (["over glibc", "over best peer"] if own else [])
    return table(head + ["best peer", "control"], lines + [mean + ["", ""]])


def threads_table(result):
    """Processor time of the rows that are timed by the clock: what a busy machine cannot blur."""
    names = list(result["allocators"])
    lines = []
    for name, row in result["rows"].items():
        if row["kind"] == "micro" and row["metric"] == "wall":
            values = medians(row, "cpu")
            lines.append([name] + [number(values.get(a)) for a in names])
    return table(["processor ns per operation"] + names, lines) if lines else ""


def rss_table(result, kind):
    names = list(result["allocators"])
    own, lines, per_glibc, per_lean = OWN in names, [], {a: [] for a in names}, []
    for name, row in result["rows"].items():
        if row["kind"] != kind:
            continue
        values = medians(row, "rss")
        lean = best_peer(values, ("jemalloc", "mimalloc"))
        line = [name] + [number(values.get(a) and values[a] / 1024) for a in names]
        for a in names:
            per_glibc[a].append(ratio(row, "rss", a, "glibc"))
        if own:
            per_lean.append(ratio(row, "rss", OWN, lean))
            line += [number(ratio(row, "rss", OWN, "glibc"), 2), number(per_lean[-1], 2)]
        lines.append(line)
    if not lines:
        return ""
    mean = ["*geometric mean over glibc*"] + [number(geomean(per_glibc[a]), 2) for a in names]
    if own:
        mean += [number(geomean(per_glibc[OWN]), 2), number(geomean(per_lean), 2)]
    head = ["peak RSS, MiB"] + names + (["over glibc", "over leaner of je, mi"] if own else [])
    return table(head, lines + [mean])


def misses(result):
    """What stays behind the aims, one line each."""
    out = []
    ratios = []
    for name, row in result["rows"].items():
        values, rss = medians(row, row["metric"]), medians(row, "rss")
        if OWN not in values:
            continue
        if row["kind"] == "start" and "glibc" in values:
            more = (values[OWN] - values["glibc"]) * 1e6
            if more > 150 or rss[OWN] - rss["glibc"] > 1024:
                out.append(f"start-up costs {more:.0f} us (150) and "
                           f"{rss[OWN] - rss['glibc']:.0f} KiB (1024) more than glibc")
            continue
        best, lean = best_peer(values), best_peer(rss, ("jemalloc", "mimalloc"))
        fast, small = ratio(row, row["metric"], OWN, best), ratio(row, "rss", OWN, lean)
        if fast and row["kind"] == "micro":
            ratios.append(fast)
        if fast and fast > 1.0:
            out.append(f"{name}: time {fast:.2f} of {best} (1.00)")
        if small and small > 1.05:
            out.append(f"{name}: peak RSS {small:.2f} of {lean} (1.05)")
        if row["kind"] == "real" and (ratio(row, "rss", OWN, "glibc") or 0) > 1.05:
            out.append(f"{name}: peak RSS {ratio(row, 'rss', OWN, 'glibc'):.2f} of glibc (1.05)")
    if ratios and geomean(ratios) > 0.90:
        out.append(f"micro rows: geometric mean {geomean(ratios):.2f} of the best peers' (0.90)")
    return out


def count_table(result):
    counts = result["count"]
    if not counts:
        return ""
    ops = []
    for of in counts.values():
        ops += [op for op in of if op not in ops]
    lines = []
    for op in ops:
        budget = BUDGETS.get(op)
        lines.append([op.replace("_", "-") + (f" (budget {budget})" if budget else "")]
                     + [number(counts[a][op]["lib"], 1) if op in counts[a] else "-"
                        for a in counts])
    return table(["instructions in the library"] + list(counts), lines)


def t3_table(key, run):
    objects = int(key.split()[1])
    names = list(run)
    bound = key[0] == "b"
    title = {"take": f"{objects:,} taken", "half": "a random half freed",
             "again": f"{objects:,} more taken"}
    lines = []
    for step, text in title.items():
        line = [text + (f" (>= {T3_TARGETS[step]})" if bound and objects >= 200000 else "")]
        for a in names:
            s = run[a][step]
            line.append(f"{100 * s['live'] / s['held']:.1f} %" if s["held"] > 0 else "-")
        lines.append(line)
    for step, text in (("none", "all freed: KiB held"), ("trim", "after malloc_trim(0): KiB")):
        lines.append([text] + [number(run[a][step]["held"] / 1024, 0) for a in names])
    if any("slabs" in run[a]["take"] for a in names):
        lines.append(["slabs after each step (the last: trimmed)"]
                     + [" ".join(f"{s['slabs']:.0f}" for s in run[a].values() if "slabs" in s)
                        or "-" for a in names])
    lines.append(["machine: MiB less free, at most"]
                 + [number(max(s["free"] for s in run[a].values()) / 2**20, 0) for a in names])
    lines.append(["machine: MiB less free after all was freed"]
                 + [number(run[a]["none"]["free"] / 2**20, 0) for a in names])
    return table([f"{'B' if bound else 'A'}, {objects:,} objects"] + names, lines)


def t3_misses(result):
    out = []
    for key, run in result["t3"].items():
        if OWN not in run:
            continue
        own = run[OWN]
        peak = max(s["held"] for s in own.values())
        allowed = max(2**20, peak / 64)
        if own["none"]["held"] > allowed:
            out.append(f"T3 {key}: {own['none']['held'] / 1024:.0f} KiB held after all was freed "
                       f"({allowed / 1024:.0f})")
        if not key.startswith("b "):
            continue
        for step, target in T3_TARGETS.items():
            use = {a: 100 * s[step]["live"] / s[step]["held"] for a, s in run.items()
                   if s[step]["held"] > 0}
            if key == "b 200000" and use[OWN] < target:
                out.append(f"T3 {key}, {step}: {use[OWN]:.1f} % ({target})")
            ahead = [f"{a} {u:.1f}" for a, u in use.items() if u > use[OWN]]
            if ahead:
                out.append(f"T3 {key}, {step}: {use[OWN]:.1f} % is behind {', '.join(ahead)}")
    return out


def count_misses(result):
    own = result["count"].get(OWN, {})
    return [f"{op}: {own[op]['lib']:.0f} instructions ({budget})"
            for op, budget in BUDGETS.items() if op in own and own[op]["lib"] > budget]


VERDICTS = ("FAIL", "NOISY", "INCONCLUSIVE", "PASS", "ERROR")


def judged_rows(result, name):
    """compare's figures of a row's time and memory against the base."""
    row = result["rows"][name]
    document = result["comparisons"][name]
    for key in (row["metric"], "rss"):
        found = compared.metric(document, row["figures"][key][0])
        if found and found.get("verdict"):
            yield key, found


def percent(share):
    return "-" if share is None else f"{100 * share:+.1f} %"


def judged_text(result, name):
    document = result["comparisons"][name]
    return f"{document['verdict']}: " + ", ".join(
        f"{'memory' if key == 'rss' else 'time'} {percent(m['change'])}"
        for key, m in judged_rows(result, name))


def judged_table(result):
    lines = []
    for name, row in result["rows"].items():
        for key, m in judged_rows(result, name):
            scale = row["figures"][key][1]
            scale *= 1 / 1024 if key == "rss" else scale_of(row["kind"])
            unit = "MiB" if key == "rss" else UNIT[row["kind"]].split()[0]
            control = m["control"]
            lines.append([f"{name}, {unit}"] + [number(m[side]["median"] * scale)
                                                for side in ("before", "after")]
                         + [percent(m["change"]), " .. ".join(map(percent, m["interval"])),
                            percent(control["change"]) if control else "-", m["verdict"]])
    head = ["numaslab", "base", "now", "change", "95 % interval", "glibc, then and now", "verdict"]
    return table(head, lines)


def status(result):
    """The exit status of numaslab compare for all rows together; 0 where nothing was judged."""
    verdicts = {d["verdict"] for d in result["comparisons"].values() if result["base"]}
    if verdicts & {"FAIL", "ERROR"}:
        return 7 if "FAIL" not in verdicts else 1
    return 6 if verdicts & {"NOISY", "INCONCLUSIVE"} else 0


def judged(result):
    verdicts = [d["verdict"] for d in result["comparisons"].values()]
    count = ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)
    return [f"### Against {result['base']}: {count}\n", judged_table(result)]


def prepare(result):
    """Gives each row its samples, from the comparison."""
    for name, row in result["rows"].items():
        if "samples" not in row:
            row["samples"] = compared.samples(row, result["comparisons"][name])
    return result


def plain(result):
    """Without what prepare() added."""
    rows = {n: {k: v for k, v in row.items() if k != "samples"} for n, row in result["rows"].items()}
    return {**result, "rows": rows}


def markdown(result):
    m = result["machine"]
    width = spread(prepare(result))
    out = [f"{m['cpu']}, {m['cpus']} processors, Linux {m['kernel']}, load {m['load']:.1f}; "
           + ", ".join(f"{a} {v}".strip() for a, v in result["allocators"].items()) + ".\n"]
    failed = [f"- {name}: {what}\n" for name, document in result["comparisons"].items()
              for what in compared.problems(document)]
    if failed:
        out.append("### Failed\n\n" + "".join(failed))
    if result["base"]:
        return "\n".join(out + judged(result))
    if result["rows"]:
        out.append(f"Medians of {result['rounds']} interleaved round{'s' if result['rounds'] > 1 else ''}"
                   + (", a quarter of the work each" if result["quick"] else "")
                   + (f"; half the range of a row's samples is typically {100 * width:.0f} %"
                      if width is not None else "") + ". "
                   "Processor time for rows of one thread and for programs, wall time for rows "
                   "of several threads (their processor time stands below) and start-up; 'over' columns are "
                   "medians of the ratios within each round, behind ~ where their 95 % interval holds "
                   "1; 'control' is a second glibc over the first.\n")
    titles = {"micro": "Micro", "real": "Real programs", "start": "Start-up (true)"}
    for kind, title in titles.items():
        times = time_table(result, kind)
        if times:
            out += [f"### {title}: time\n", times]
            if kind == "micro":
                out.append(threads_table(result))
            out += [f"### {title}: memory\n", rss_table(result, kind)]
    if result["count"]:
        out += ["### Instructions, counted by single-stepping\n", count_table(result)]
    if result["t3"]:
        out.append("### Fragmentation: bytes asked for and live / bytes resident for them\n")
        out += [t3_table(key, run) for key, run in result["t3"].items()]
    if OWN in result["allocators"]:
        behind = misses(result) + count_misses(result) + t3_misses(result)
        out.append("### Behind the aims (aim in brackets)\n")
        out.append("".join(f"- {line}\n" for line in behind) or "Nothing.\n")
    return "\n".join(out)
