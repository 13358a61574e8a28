// The page follows /status/events and shows what it hears. All texts are set as
// texts, never as HTML.
"use strict";

const $ = (id) => document.getElementById(id);
const table = $("targets");
const body = table.tBodies[0];
const states = ["failing", "revoked", "doubted", "stale", "waiting", "fresh"]; // the worst first
const columns = ["state", "target", "lane", "overrides", "proven", "changed", "expires", "error", "waitsFor"];
const page = 200; // rows

const targets = new Map(); // by name
const rows = new Map(); // what is shown, by name
let status = null; // the last one, without its targets
let heard = 0; // when
let most = page;
let order = { by: "state", up: true };

// make returns an element with a class and a text.
function make(tag, name, text) {
	const e = document.createElement(tag);
	if (name) e.className = name;
	e.textContent = text ?? "";
	return e;
}

// set changes a text only if it differs, so that what is selected stays so.
function set(e, text) {
	if (e.textContent !== text) e.textContent = text;
}

// ago writes how long ago a time was.
function ago(time) {
	if (!time) return "–";
	return span(Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000)));
}

// ahead writes how far off a time is.
function ahead(time) {
	if (!time) return "";
	const s = Math.round((Date.parse(time) - Date.now()) / 1000);
	return s > 0 ? "in " + span(s) : "expired";
}

function span(s) {
	if (s < 120) return s + " s";
	if (s < 7200) return Math.floor(s / 60) + " min";
	return s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d";
}

// hear takes in a whole status or a change.
function hear(kind, data) {
	if (kind === "status") {
		status = data;
		targets.clear();
	}
	status.at = data.at;
	status.lanes = data.lanes;
	status.rotations = data.rotations ?? [];
	for (const t of data.targets ?? []) targets.set(t.target, t);
	for (const name of data.gone ?? []) targets.delete(name);
	heard = Date.now();
	draw();
}

// proven is when a target was last proven; a poll proves those that are well.
function proven(t, polls) {
	const polled = polls.get(t.lane);
	return !t.error && t.proven && Date.parse(polled) > Date.parse(t.proven) ? polled : t.proven;
}

// before compares two targets as the table is ordered.
function before(a, b) {
	const by = order.by;
	const none = by === "expires" ? "~" : ""; // what never expires comes after all that does
	const value = (t) => (by === "state" ? states.indexOf(t.state) : t[by] ?? none);
	const x = value(a), y = value(b);
	const found = x < y ? -1 : x > y ? 1 : 0;
	return (order.up ? found : -found) || (a.target < b.target ? -1 : 1);
}

function chosen() {
	const words = $("words").value.toLowerCase();
	const some = new Set([...$("states").querySelectorAll("input:checked")].map((i) => i.value));
	const has = (t) => [t.target, t.lane, t.overrides, t.error, t.waitsFor].some((s) => s?.toLowerCase().includes(words));
	return [...targets.values()].filter((t) => some.has(t.state) && has(t)).sort(before);
}

function draw() {
	if (!status) return;
	const counts = new Map(states.map((s) => [s, 0]));
	for (const t of targets.values()) counts.set(t.state, counts.get(t.state) + 1);
	drawSummary(counts);
	drawLanes();
	drawRotations();
	$("choice").hidden = table.hidden = Boolean(status.standby);
	for (const s of states) set($("states").querySelector(`[data-count=${s}]`), `${s} (${counts.get(s)})`);
	table.classList.toggle("nodes", targets.values().some((t) => t.overrides));
	table.classList.toggle("certificates", targets.values().some((t) => t.expires));
	const all = chosen();
	drawRows(all.slice(0, most));
	if (all.length > 0 && performance.getEntriesByName("rows").length === 0) performance.mark("rows"); // for measurements
	$("more").hidden = all.length <= most;
	set($("more"), `Show more: ${Math.min(all.length, most)} of ${all.length}`);
}

function drawSummary(counts) {
	const lost = Date.now() - heard > 20000;
	let text = `${targets.size} targets, ${counts.get("fresh")} fresh`;
	if (status.standby) text = `Standing by: ${status.standby} works`;
	if (lost) text += `; nothing heard since ${new Date(heard).toLocaleTimeString()}`;
	set($("summary"), [text, status.mode, status.version].filter(Boolean).join(" · "));
	$("summary").classList.toggle("lost", lost);
}

function drawLanes() {
	const boxes = status.lanes.map((l) => {
		const box = make("article");
		box.append(make("h2", "", l.name), make("p", "", `${l.targets} targets, polled ${l.polled ? ago(l.polled) + " ago" : "not yet"}`));
		if (l.held) box.append(make("p", "held", `Removal held back until ${new Date(l.held.until).toLocaleTimeString()}: ${l.held.gone} of ${l.held.of} variables are gone at once`));
		return box;
	});
	$("lanes").replaceChildren(...boxes);
}

function drawRotations() {
	$("rotations").hidden = status.rotations.length === 0;
	const rows = status.rotations.map((r) => {
		const row = make("tr");
		const due = r.due && !r.waitsFor ? "due " + new Date(r.due).toLocaleString() : "";
		const last = [r.problem ?? r.waitsFor ?? due, r.unasked && "not asked: " + r.unasked, r.unread && "not followed: " + r.unread].filter(Boolean).join("; ");
		for (const text of [r.set, r.stage ?? "", ago(r.since), r.primary ?? "", last]) row.append(make("td", "", text));
		return row;
	});
	$("rotations").tBodies[0].replaceChildren(...rows);
}

function drawRows(list) {
	const polls = new Map(status.lanes.map((l) => [l.name, l.polled]));
	const keep = new Set(list.map((t) => t.target));
	for (const [name, row] of rows) {
		if (keep.has(name)) continue;
		row.remove();
		rows.delete(name);
	}
	list.forEach((t, i) => {
		let row = rows.get(t.target);
		if (!row) {
			row = make("tr");
			columns.forEach(() => row.insertCell());
			rows.set(t.target, row);
		}
		fill(row.cells, t, polls);
		if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] ?? null);
	});
}

function fill(cells, t, polls) {
	cells[0].className = t.state;
	const next = t.next && Date.parse(t.next) > Date.now() ? `, ${new Date(t.next).toLocaleTimeString()}` : "";
	const texts = [t.state, t.target, t.lane, t.overrides ?? "", ago(proven(t, polls)), ago(t.changed), ahead(t.expires), t.error ?? "", (t.waitsFor ?? "") + next];
	texts.forEach((text, i) => set(cells[i], text));
}

// follow reads the stream, and begins anew when it ends.
async function follow() {
	for (;;) {
		const token = sessionStorage.getItem("token");
		try {
			const answer = await fetch("/status/events", { headers: token ? { Authorization: "Bearer " + token } : {} });
			if (answer.status === 401) {
				set($("refused"), token ? "This is not the token." : "");
				$("login").hidden = false;
				return;
			}
			if (answer.ok) await read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
		} catch {
			// the server is away; the summary says so
		}
		await new Promise((done) => setTimeout(done, 2000));
	}
}

async function read(reader) {
	let rest = "";
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return;
		const events = (rest + value).split("\n\n");
		rest = events.pop();
		for (const event of events) {
			heard = Date.now();
			const [, kind, data] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
			if (kind) hear(kind, JSON.parse(data));
		}
	}
}

for (const s of states) {
	const label = make("label"), box = make("input"), count = make("span", s, s);
	box.type = "checkbox";
	box.value = s;
	box.checked = true;
	count.dataset.count = s;
	label.append(box, " ", count);
	$("states").append(label);
}
for (const th of table.tHead.rows[0].cells) {
	th.firstChild.addEventListener("click", () => {
		order = { by: th.dataset.by, up: order.by !== th.dataset.by || !order.up };
		for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
		th.setAttribute("aria-sort", order.up ? "ascending" : "descending");
		draw();
	});
}
$("choice").addEventListener("input", draw);
$("choice").addEventListener("submit", (e) => e.preventDefault());
$("more").addEventListener("click", () => {
	most += page;
	draw();
});
$("login").addEventListener("submit", (e) => {
	e.preventDefault();
	sessionStorage.setItem("token", $("token").value);
	$("login").hidden = true;
	follow();
});
table.tHead.rows[0].cells[0].setAttribute("aria-sort", "ascending");
setInterval(draw, 1000);
follow();
