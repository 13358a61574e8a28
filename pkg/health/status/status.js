// The page follows /status/events and shows what it hears. All texts are set as
// texts, never as HTML.
"use strict";

const $ = (id) => document.getElementById(id);
const table = $("targets");
const body = table.tBodies[0];
const heads = [...table.tHead.rows[0].cells];
const columns = heads.map((th) => th.dataset.by);
const states = ["failing", "revoked", "doubted", "stale", "limited", "waiting", "fresh"]; // the worst first
const page = 200; // rows
const silence = 2000; // ms without a sign of life after which the process counts as lost
const help = "https://github.com/secretsync/syncer/blob/main/docs/troubleshooting.md#errors-of-a-target";

// stages are those of a rotation, each with what follows it; a return replaces an apply.
const stages = {
	idle: "a new version is made",
	apply: "all consumers receive the new version",
	introduce: "the new version becomes the primary",
	switch: "the old version is retired",
	revoke: "the old version is refused",
};
const follows = { ...stages, return: "the previous version is the primary again" };

const targets = new Map(); // by name
const rows = new Map(); // what is shown, by name
const opened = new Set(); // targets with details, and errors with their targets
let status = null; // the last one, without its targets
let heard = 0; // when
let following = true;
let most = page;
let order = { by: "state", up: true };

// make returns an element with a class and a text.
function make(tag, name, text) {
	const e = document.createElement(tag);
	if (name) e.className = name;
	e.textContent = text ?? "";
	return e;
}

function button(text, act) {
	return Object.assign(make("button", "", text), { type: "button", onclick: act });
}

// set changes a text and a title only if they differ, so that what is selected stays so.
function set(e, text, title) {
	if (e.textContent !== text) e.textContent = text;
	if (title !== undefined && e.title !== title) e.title = title;
}

const counted = (n) => `${n} target${n === 1 ? "" : "s"}`;
const exact = (time) => (time ? new Date(time).toLocaleString() : "");

const age = (time) => span(Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000)));
const ago = (time) => (time ? age(time) + " ago" : "–");

// ahead writes how far off a time is.
function ahead(time, past) {
	if (!time) return "";
	const s = Math.round((Date.parse(time) - Date.now()) / 1000);
	return s > 0 ? "in " + span(s) : past;
}

function span(s) {
	if (s < 120) return s + " s";
	if (s < 7200) return Math.floor(s / 60) + " min";
	return s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " d";
}

// moment is an element with a relative time, and the exact one as its title.
function moment(time, text) {
	return Object.assign(make("time", "", text), { dateTime: time, title: exact(time) });
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
	for (const t of data.targets ?? []) targets.set(t.target, { ...t, wrong: t.error ?? t.limits });
	for (const name of data.gone ?? []) targets.delete(name);
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
	const none = by === "expires" || by === "failingSince" ? "~" : ""; // those without one come last
	const value = (t) => (by === "state" ? states.indexOf(t.state) : t[by] ?? none);
	const x = value(a), y = value(b);
	const found = x < y ? -1 : x > y ? 1 : 0;
	return (order.up ? found : -found) || (a.target < b.target ? -1 : 1);
}

const boxes = () => [...$("states").querySelectorAll("input")];

function chosen() {
	const words = $("words").value.toLowerCase();
	const some = new Set(boxes().filter((i) => i.checked).map((i) => i.value));
	const has = (t) => [t.target, t.lane, t.overrides, t.variables, t.wrong, t.waitsFor].some((s) => s?.toLowerCase().includes(words));
	return [...targets.values()].filter((t) => some.has(t.state) && has(t)).sort(before);
}

// The filter is part of the address, so that a link shows the same.
function keepFilter() {
	const hidden = boxes().filter((i) => !i.checked).map((i) => i.value);
	const query = new URLSearchParams();
	if ($("words").value) query.set("filter", $("words").value);
	if (hidden.length) query.set("hide", hidden.join(","));
	history.replaceState(null, "", query.size ? "?" + query : location.pathname);
	most = page;
	draw();
}

function readFilter() {
	const query = new URLSearchParams(location.search);
	$("words").value = query.get("filter") ?? "";
	const hidden = (query.get("hide") ?? "").split(",");
	for (const box of boxes()) box.checked = !hidden.includes(box.value);
}

function draw() {
	if (!status) return;
	const counts = new Map(states.map((s) => [s, 0]));
	for (const t of targets.values()) counts.set(t.state, counts.get(t.state) + 1);
	drawHead(counts);
	drawLanes();
	drawRotations();
	drawErrors();
	const all = chosen();
	$("choice").hidden = Boolean(status.standby) || targets.size === 0;
	table.hidden = Boolean(status.standby) || all.length === 0;
	set($("none").firstElementChild, status.standby || all.length ? "" : targets.size ? "No target matches the filter." : "There is no target yet.");
	$("clear").hidden = Boolean(status.standby) || all.length > 0 || targets.size === 0;
	for (const s of states) set($("states").querySelector(`[data-count=${s}]`), `${s} (${counts.get(s)})`);
	const some = (key) => targets.values().some((t) => t[key]);
	table.classList.toggle("nodes", some("overrides"));
	table.classList.toggle("certificates", some("expires"));
	table.classList.toggle("troubles", some("error"));
	table.classList.toggle("identities", status.lanes.length > 1);
	drawRows(all.slice(0, most));
	if (all.length > 0 && performance.getEntriesByName("rows").length === 0) performance.mark("rows"); // for measurements
	$("more").hidden = all.length <= most;
	set($("more"), `Show more: ${Math.min(all.length, most)} of ${all.length}`);
}

function drawHead(counts) {
	const bad = targets.size - counts.get("fresh") - counts.get("waiting");
	let text = `${counted(targets.size)}, ${counts.get("fresh")} fresh`;
	if (status.standby) text = `Standing by: ${status.standby} works`;
	set($("summary"), [text, status.mode, status.version].filter(Boolean).join(" · "));
	const pod = [status.namespace, status.pod].filter(Boolean).join("/");
	const whose = [pod && make("span", "", "Pod " + pod), status.started && moment(status.started, "started " + ago(status.started)), status.restart && make("span", "", status.restart)].filter(Boolean);
	if ($("whose").textContent !== whose.map((e) => e.textContent).join("")) $("whose").replaceChildren(...whose);
	document.title = (bad ? `(${bad}) ` : "") + ["Syncer", pod].filter(Boolean).join(" · ");
	drawLost();
}

// drawLost tells that the process is gone, or that nothing is heard of it.
function drawLost() {
	if (!status) return;
	const lost = !following || Date.now() - heard > silence;
	document.body.classList.toggle("lost", lost);
	$("lost").hidden = !lost;
	if (!lost) return;
	set($("lost"), `The process has not answered since ${exact(heard)}. This page shows its last known state.`);
	document.title = "(lost) Syncer";
}

function drawLanes() {
	const cards = status.lanes.map((l) => {
		const card = make("article");
		card.append(make("h2", "", l.name), make("p", "", [l.login, l.url && "at " + l.url].filter(Boolean).join(" ")));
		const polled = make("p", "", `${counted(l.targets)}, polled `);
		polled.append(l.polled ? moment(l.polled, ago(l.polled)) : "not yet");
		card.append(polled);
		if (l.held) card.append(make("p", "held", `Removal held back until ${new Date(l.held.until).toLocaleTimeString()}: ${l.held.gone} of ${l.held.of} variables are gone at once`));
		return card;
	});
	renew($("lanes"), cards);
}

// renew replaces the children of a section after its head, if their texts have changed.
function renew(section, children) {
	const old = [...section.children].filter((e) => e.id === "");
	if (old.length === children.length && old.every((e, i) => e.textContent === children[i].textContent)) return;
	old.forEach((e) => e.remove());
	section.append(...children);
}

function drawRotations() {
	$("rotations").hidden = status.rotations.length === 0;
	const cards = status.rotations.map((r) => {
		const card = make("article"), list = make("ol", "stages");
		for (const stage of Object.keys(stages)) {
			const now = r.stage === stage || (stage === "apply" && r.stage === "return");
			const item = make("li", "", now ? r.stage : stage);
			if (now) item.setAttribute("aria-current", "step");
			list.append(item);
		}
		card.append(make("h3", "", r.set), list);
		const say = (head, ...texts) => {
			card.append(make("p", "", head + ": "));
			card.lastChild.append(...texts);
		};
		if (r.problem) say("Problem", r.problem);
		if (r.waitsFor) say("Waits for", r.waitsFor);
		if (r.since) say("In this stage", "for ", moment(r.since, age(r.since)));
		if (follows[r.stage]) say("Next", follows[r.stage], ...(r.stage === "idle" && r.due ? [" ", moment(r.due, ahead(r.due, "now"))] : []));
		if (r.stage !== "idle" && r.due) say("Next version", "due ", moment(r.due, ahead(r.due, "now")));
		if (r.primary) say("Primary", r.primary);
		if (r.unasked) say("Not asked", r.unasked);
		if (r.unread) say("Not followed", r.unread);
		return card;
	});
	renew($("rotations"), cards);
}

// drawErrors shows each error once, with the targets that it concerns.
function drawErrors() {
	const groups = new Map();
	for (const t of targets.values()) if (t.wrong) groups.set(t.wrong, [...(groups.get(t.wrong) ?? []), t.target]);
	const found = [...groups].sort((a, b) => b[1].length - a[1].length).slice(0, 5); // the table has all
	$("errors").hidden = found.length === 0;
	const all = found.map(([error, names]) => {
		const group = make("details"), names20 = names.slice(0, 20);
		group.open = opened.has(error);
		group.addEventListener("toggle", () => opened[group.open ? "add" : "delete"](error));
		group.append(make("summary", "", `${names.length === 1 ? names[0] : counted(names.length)}: ${error}`), make("p", "", names20.join(", ") + (names.length > 20 ? `, and ${names.length - 20} more` : "")));
		group.append(button("Show only these", () => {
			$("words").value = error;
			keepFilter();
		}));
		return group;
	});
	renew($("errors"), all);
}

function drawRows(list) {
	const polls = new Map(status.lanes.map((l) => [l.name, l.polled]));
	const keep = new Set(list.map((t) => t.target));
	for (const [name, row] of rows) {
		if (keep.has(name)) continue;
		row.details?.remove();
		row.remove();
		rows.delete(name);
	}
	let next = body.firstElementChild;
	for (const t of list) {
		const row = rows.get(t.target) ?? makeRow(t.target);
		fill(row, t, polls);
		for (const e of [row, row.details]) {
			if (!e) continue;
			if (e === next) next = next.nextElementSibling;
			else body.insertBefore(e, next);
		}
	}
}

function makeRow(name) {
	const row = make("tr");
	columns.forEach((column, i) => {
		row.insertCell().className = column;
		row.cells[i].dataset.head = heads[i].textContent;
	});
	row.cells[1].append(button(name, () => {
		opened[opened.has(name) ? "delete" : "add"](name);
		draw();
	}));
	rows.set(name, row);
	return row;
}

function fill(row, t, polls) {
	const next = t.next && Date.parse(t.next) > Date.now() ? `, ${ahead(t.next)}` : "";
	const seen = proven(t, polls);
	const texts = [t.state, null, t.wrong ?? "", t.failingSince ? ago(t.failingSince) : "", (t.waitsFor ?? "") + next, ago(seen), ago(t.changed), ahead(t.expires, "expired"), t.lane, t.overrides ?? ""];
	const titles = { failingSince: exact(t.failingSince), waitsFor: exact(t.next), proven: exact(seen), changed: exact(t.changed), expires: exact(t.expires) };
	texts.forEach((text, i) => text !== null && set(row.cells[i], text, titles[columns[i]]));
	row.cells[0].className = "state " + t.state;
	const open = opened.has(t.target);
	row.cells[1].firstChild.setAttribute("aria-expanded", open);
	if (!open) {
		row.details = row.details?.remove(); // undefined
		return;
	}
	if (!row.details) (row.details = make("tr", "details")).insertCell().colSpan = columns.length;
	fillDetails(row.details.cells[0], t, seen);
}

// fillDetails shows all that is known of a target, with exact times.
function fillDetails(cell, t, seen) {
	const list = make("dl");
	const say = (head, text, link) => {
		if (!text) return;
		const dd = make("dd", "", text);
		if (link) dd.append(" ", Object.assign(make("a", "", "What to do"), { href: link }));
		list.append(make("dt", "", head), dd);
	};
	const both = (time, text) => time && `${text ?? ago(time)} (${exact(time)})`;
	say(t.error ? "Error" : "Limits", t.wrong, help);
	say("Failing since", both(t.failingSince));
	say("Waits for", t.waitsFor);
	say("Next try", both(t.next, ahead(t.next, "now")));
	say(t.target.startsWith("secret/") ? "Secret" : "Path", t.place);
	say("Variables", t.variables);
	say("Of the node", t.overrides);
	say("Identity", t.lane);
	say("Last change", both(t.changed) ?? "not by this process");
	say("Last proof", both(seen) ?? "none yet");
	say("Expires", both(t.expires, ahead(t.expires, "expired")));
	if (cell.textContent !== list.textContent) cell.replaceChildren(list);
}

// follow reads the stream, and begins anew when it ends.
async function follow() {
	for (;;) {
		const token = sessionStorage.getItem("token");
		try {
			const answer = await fetch("/status/events", { headers: token ? { Authorization: "Bearer " + token } : {} });
			if (!answer.ok && !status) set($("summary"), await answer.text());
			if (answer.status === 401) {
				set($("refused"), token ? "This is not the token." : "");
				$("login").hidden = false;
				$("token").select(); // replaces a wrong one
				return;
			}
			if (answer.ok) await read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
		} catch {
			// the server is away; the page says so
		}
		following = false;
		drawLost();
		await new Promise((done) => setTimeout(done, 1000));
	}
}

async function read(reader) {
	let rest = "";
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return;
		[following, heard] = [true, Date.now()];
		const events = (rest + value).split("\n\n");
		rest = events.pop();
		for (const event of events) {
			const [, kind, data] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
			if (kind) hear(kind, JSON.parse(data));
		}
	}
}

for (const s of states) {
	const label = make("label"), box = Object.assign(make("input"), { type: "checkbox", value: s }), count = make("span", s, s);
	count.dataset.count = s;
	label.append(box, " ", count);
	$("states").append(label);
}
for (const th of heads) {
	th.firstChild.addEventListener("click", () => {
		order = { by: th.dataset.by, up: order.by !== th.dataset.by || !order.up };
		for (const other of heads) other.removeAttribute("aria-sort");
		th.setAttribute("aria-sort", order.up ? "ascending" : "descending");
		draw();
	});
}
$("choice").addEventListener("input", keepFilter);
$("choice").addEventListener("submit", (e) => e.preventDefault());
$("clear").addEventListener("click", () => {
	history.replaceState(null, "", location.pathname);
	readFilter();
	draw();
	$("words").focus();
});
$("more").addEventListener("click", () => draw((most += page)));
$("login").addEventListener("submit", (e) => {
	e.preventDefault();
	sessionStorage.setItem("token", String.fromCharCode(...new TextEncoder().encode($("token").value.trim()))); // a header has bytes
	$("login").hidden = true;
	follow();
});
heads[0].setAttribute("aria-sort", "ascending");
readFilter();
setInterval(draw, 1000);
setInterval(drawLost, 250);
follow();
