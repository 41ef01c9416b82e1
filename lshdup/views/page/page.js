"use strict";
// Everything below works on #data, which html.py describes. Texts and names reach the page through textContent only.
const data = JSON.parse(document.getElementById("data").textContent);
const { steps, documents, kinds, moves, pairs, passages, variants, without } = data;  // documents are in byte order of names
const { shared } = data;  // the measure, if the page has pairs and what they share instead of groups
const LOWEST = steps.threshold[0], LAST = steps.threshold.length - 1, ROWS = 60, MEMBERS = 200;
const $ = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const state = { step: 0, view: "groups", search: "", which: "all", order: "size", found: [], drawn: 0 };

// --- what there is at a threshold ------------------------------------------------------------------------------------------

const names = documents.name.map((base, d) => documents.folders[documents.folder[d]] + base);
const lower = names.map((name) => name.toLowerCase());
const starts = [0];  // of the moves of each kind
for (const count of moves.count) starts.push(starts.at(-1) + count);
const similarities = pairs.values.flatMap((value, at) => new Array(pairs.counts[at]).fill(value));  // descending

/** How many of the listed pairs reach the threshold of a step. */
function reaching(step) {
  let low = 0, high = similarities.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (similarities[middle] >= steps.threshold[step]) low = middle + 1; else high = middle;
  }
  return low;
}

/** The groups of `lshdup clusters` at a step, as far as the page lists them: each kind is with the one it moved to last. */
function groupsAt(step) {
  const groups = new Map();
  const groupOf = (kind) => {
    if (!groups.has(kind)) groups.set(kind, { kind, first: kinds[kind][0], members: [], size: kinds[kind].length, least: 1 });
    return groups.get(kind);
  };
  for (let kind = 0; kind < data.grouped; kind++) {
    let at = starts[kind];
    while (at < starts[kind + 1] && moves.step[at] <= step) at++;
    const leader = at > starts[kind] ? moves.to[at - 1] : kind, group = groupOf(leader);
    if (leader === kind) continue;
    group.members.push({ kind, similarity: moves.similarity[at - 1] });
    group.size += kinds[kind].length;
    group.least = Math.min(group.least, moves.similarity[at - 1]);
  }
  const several = [...groups.values()].filter((group) => group.size > 1);
  for (const { members } of several) members.sort((a, b) => b.similarity - a.similarity || kinds[a.kind][0] - kinds[b.kind][0]);
  return several;
}
let groups = [];

const documentsOf = (group) => [...kinds[group.kind], ...group.members.flatMap((each) => kinds[each.kind])];

/** Groups and pairs alike are filtered by the documents in them and by whether these are all copies of one another. */
function fits(some, copies, near) {
  if (state.which === "near" && !near || state.which === "copies" && !copies) return false;
  if (state.which === "bytes" && (near || some.some((d) => documents.same[d] < 2))) return false;
  if (state.which === "apart" && some.every((d) => documents.folder[d] === documents.folder[some[0]])) return false;
  return !state.search || some.some((d) => lower[d].includes(state.search));
}

const ORDERS = {
  groups: {
    size: ["largest first", (a, b) => b.size - a.size || a.first - b.first],  // as `lshdup clusters`
    alike: ["most alike first", (a, b) => b.least - a.least || a.first - b.first],
    unlike: ["least alike first", (a, b) => a.least - b.least || a.first - b.first],
    name: ["by name", (a, b) => a.first - b.first],
  },
  pairs: {
    alike: ["most alike first", (a, b) => b.similarity - a.similarity || a.at - b.at],
    unlike: ["least alike first", (a, b) => a.similarity - b.similarity || a.at - b.at],
    name: ["by name", (a, b) => a.first - b.first || a.second - b.second],
  },
};

/** All rows of the list, and those of them that the filters let through. */
function find() {
  if (state.view === "groups") {
    const has = (group) => [group, ...group.members].some(({ kind }) => kinds[kind].length > 1);
    return [groups.length, groups.filter((group) => fits(documentsOf(group), has(group), group.members.length > 0))];
  }
  const rows = [];
  let all = reaching(state.step);
  for (let at = 0; at < all; at++) {
    const left = kinds[pairs.left[at]], right = kinds[pairs.right[at]];
    if (!fits(left.length + right.length > 2 ? [...left, ...right] : [left[0], right[0]], false, true)) continue;
    rows.push({ first: left[0], second: right[0], more: left.length * right.length - 1, similarity: similarities[at], at });
  }
  for (let kind = 0; kind < data.grouped; kind++) {
    const some = kinds[kind];
    if (some.length < 2) continue;
    all++;
    if (fits(some, true, false)) rows.push({ kind, first: some[0], second: some[1], similarity: 1, at: -1 });
  }
  return [all, rows];
}

// --- drawing ----------------------------------------------------------------------------------------------------------------

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value; else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Four places as `lshdup` prints them: rounded, but what is not 1 does not look like it. */
const scoreText = (similarity) => similarity === 1 ? "1" : Math.min(similarity, 0.9999).toFixed(4);
const plural = (count, noun) => `${number.format(count)} ${noun}${count === 1 ? "" : "s"}`;

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // no permission, or an old browser
    const area = element("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  button.textContent = "copied";
  setTimeout(() => { button.textContent = before; }, 900);
}

/** The name itself: it is shown with escapes if it is no text, or holds characters that cannot be seen. */
const exactName = (d) => lists && new TextDecoder().decode(bytesOf(lists.names[documents.line[d]])) || names[d];

function nameOf(d) {
  const folder = documents.folders[documents.folder[d]];
  const button = element("button", { className: "copy", type: "button", textContent: "copy", title: "copy the name" });
  button.addEventListener("click", () => copy(exactName(d), button));
  return element("span", { className: "named" },
    element("bdi", { className: "name" }, element("span", { className: "folder", textContent: folder }), names[d].slice(folder.length)), " ", button);
}

const sizeOf = (d) => plural(documents.shingles[d], "shingle");

const accepted = new Map();  // what a person calls no duplicates: pairs of kinds
const MOST_ACCEPTED = 1_000_000;  // pairs of documents that a list may have
let acceptedPairs = 0;

/** A button that puts the documents of two kinds on the list of pairs that are no duplicates, or takes them from it. */
function acceptButton(from, to) {
  const key = from < to ? `${from},${to}` : `${to},${from}`, button = element("button", { className: "accept", type: "button", textContent: "not a duplicate" });
  const press = () => button.setAttribute("aria-pressed", String(accepted.has(key)));
  button.addEventListener("click", () => {
    const count = kinds[from].length * kinds[to].length;
    if (accepted.delete(key)) {
      acceptedPairs -= count;
    } else if (acceptedPairs + count > MOST_ACCEPTED) {
      button.textContent = `not added: a list has at most ${plural(MOST_ACCEPTED, "pair")}, these are ${number.format(count)} more`;
      return;
    } else {
      accepted.set(key, [from, to]);
      acceptedPairs += count;
    }
    press();
    drawAccepted();
  });
  press();
  return button;
}

/** What differs from one document to another. */
function passagesOf(from, to) {
  const box = element("div", { className: "passages", tabIndex: 0 });
  const key = `${from},${to}`, back = `${to},${from}`, flipped = back in passages, segments = passages[flipped ? back : key];
  const ends = [from, to].map((kind) => names[kinds[kind][0]]);
  if (segments === undefined) {
    const why = without[key] ?? without[back] ?? without[""];
    box.append(element("p", { className: "note" }, `The differences of this pair are not in this page (${why}): lshdup show `,
      element("bdi", { textContent: ends[0] }), " ", element("bdi", { textContent: ends[1] })));
    return box;
  }
  const [minus, plus] = flipped ? ["+", "-"] : ["-", "+"], [away, here] = flipped ? [">", "<"] : ["<", ">"];
  box.append(element("p", { className: "note text" }, element("del", { textContent: ends[0] }), " ", element("ins", { textContent: ends[1] })));
  const text = element("p", { className: "text" });
  for (const [sort, content] of segments) {
    if (sort === minus) text.append(element("del", { textContent: content }));
    else if (sort === plus) text.append(element("ins", { textContent: content }));
    else if (sort === away) text.append(element("span", { className: "moved away", textContent: content, title: "stands elsewhere in the other" }));
    else if (sort === here) text.append(element("span", { className: "moved", textContent: content, title: "stood elsewhere in the other" }));
    else if (sort === "…") text.append(element("span", { className: "fold", textContent: " … the rest is too long for this page" }));
    else if (sort === "f") text.append(element("span", { className: "fold", textContent: ` ⋯ ${plural(content, "word")} in both ⋯ ` }));
    else text.append(content);
  }
  box.append(text);
  return box;
}

/** What two documents share, beside each other: what is alike is marked, and what stands around it is dimmed. */
function sharedOf(pair) {
  const box = element("div", { className: "passages", tabIndex: 0 }), from = pairs.left[pair.at], to = pairs.right[pair.at];
  const key = `${from},${to}`, ends = [names[pair.first], names[pair.second]], heads = ends.map((textContent) => element("bdi", { textContent }));
  if (!(key in passages)) {
    box.append(element("p", { className: "note" }, `What this pair shares is not in this page (${without[key] ?? without[""]}): lshdup show `,
      heads[0], " ", heads[1], " --shared"));
    return box;
  }
  let cells = heads.map((head, side) => element("div", { className: "note text" }, `${"AB"[side]}  `, head));
  const grid = element("div", { className: "beside" }, ...cells);
  const part = (sort, textContent) => sort === "-" || sort === "+" ? element("span", { className: "rest", textContent })
    : element("mark", sort === "=" ? { textContent } : { textContent, className: "moved", title: "stands elsewhere in the other" });
  for (const [sort, content, other = content] of passages[key]) {
    if (sort === "p") {
      cells = [0, 1].map(() => element("div", { className: "text" }));
      grid.append(element("p", { className: "note", textContent: content }), ...cells);
    } else if (sort === "…") grid.append(element("p", { className: "note", textContent: "… the rest is too long for this page" }));
    else {
      if ("=-<".includes(sort)) cells[0].append(part(sort, content));
      if ("=+>".includes(sort)) cells[1].append(part(sort, other));
    }
  }
  box.append(grid);
  return box;
}

/** The share of each document of a pair that is in the other, and their similarity, as `lshdup pairs` has them. */
function sharesOf({ first, second, similarity }) {
  const a = documents.shingles[first], b = documents.shingles[second];
  const both = Math.round(shared === "containment" ? similarity * Math.min(a, b) : similarity * (a + b) / (1 + similarity));
  return [both / a, both / b, both / (a + b - both)];
}

function drawShared(pair) {
  const shares = sharesOf(pair), badges = [["", "same text", "same bytes"][pairs.same[pair.at]]];
  const named = [pair.first, pair.second].map((d, side) => element("span", { className: "named" }, nameOf(d),
    element("span", { className: "note share", textContent: `${scoreText(shares[side])} of ${sizeOf(d)} in the other` })));
  if (pairs.estimated.includes(pair.at)) badges.unshift("by estimate");
  if (shared === "containment") badges.push(`similarity ${scoreText(shares[2])}`);
  return openable(scoreText(pair.similarity), element("span", {}, ...named), badges.filter(Boolean).join(", "),
    () => element("div", { className: "inside" }, sharedOf(pair)));
}

/** A row that opens: its inside is made when it is wanted first. Names in it can be selected. */
function openable(score, label, note, inside) {
  const toggle = element("button", { className: "toggle score", type: "button", textContent: score });
  toggle.setAttribute("aria-expanded", "false");
  const row = element("div", { className: "row opens" }, toggle, label, element("span", { className: "badge", textContent: note }));
  const item = element("li", {}, row);
  let made = null;
  row.addEventListener("click", (event) => {
    if (event.target.className === "copy" || event.target !== toggle && !getSelection().isCollapsed) return;
    const open = toggle.getAttribute("aria-expanded") !== "true";
    toggle.setAttribute("aria-expanded", String(open));
    if (open && !made) item.append(made = inside());
    if (made) made.hidden = !open;
  });
  return item;
}

function plainRow(score, label, note, className = "") {
  return element("li", { className }, element("div", { className: "row" }, element("span", { className: "score", textContent: score }), label,
    element("span", { className: "badge", textContent: note })));
}

/** Append the rows that functions make: some hundred, and a button for as many more. */
function appendSome(list, makers) {
  list.append(...makers.slice(0, MEMBERS).map((make) => make()));
  if (makers.length <= MEMBERS) return list;
  const more = element("button", { type: "button", textContent: `${number.format(makers.length - MEMBERS)} more` }), item = element("li", {}, more);
  more.addEventListener("click", () => {
    item.remove();
    appendSome(list, makers.slice(MEMBERS));
  });
  list.append(item);
  return list;
}

const SAME = ["the same shingles, another text", "same text", "same bytes"];

/** The copies of a kind from the second on: their similarity to the kept document, and how much they are the same as the first. */
const copiesOf = (kind, similarity = 1, above = "") =>
  kinds[kind].slice(1).map((d) => () => plainRow(scoreText(similarity), nameOf(d), SAME[documents.same[d]] + above, above && "under"));

/** What is the same of all documents of a kind, in a word. */
const sameOf = (kind) => SAME[Math.min(...kinds[kind].slice(1).map((d) => documents.same[d]))];

/** Each variant of the kept text once, with how many members of the group have it, and who. */
function variantsOf(group) {
  const here = new Set(group.members.map(({ kind }) => kind)), compared = group.members.filter(({ kind }) => `${group.kind},${kind}` in passages);
  const rows = variants[group.kind].map(([before, passage, after, text, members]) => [before, passage, after, text, members.filter((kind) => here.has(kind))])
    .filter((each) => each[4].length);
  const note = compared.length < group.members.length
    ? `${number.format(compared.length)} of ${number.format(group.members.length)} members are compared with the kept one here.`
    : "What the members have instead of passages of the kept one.";
  const list = element("ol", { className: "variants" });
  appendSome(list, rows.map(([before, passage, after, text, members]) => () => openable(`${number.format(members.length)} ×`,
    element("span", { className: "text" }, before, ...(passage ? [element("del", { textContent: passage })] : []),
      ...(text ? [element("ins", { textContent: text })] : []), after), "",
    () => appendSome(element("ul", { className: "inside" }), members.map((kind) => () => plainRow("", nameOf(kinds[kind][0]), ""))))));
  return openable("", element("span", { className: "note", textContent: plural(rows.length, "variant") }), "",
    () => element("div", {}, element("p", { className: "note", textContent: note }), list));
}

function drawGroup(group) {
  const what = group.members.length ? `least ${scoreText(group.least)}` : sameOf(group.kind);
  return openable(number.format(group.size), nameOf(group.first), what, () => {
    const list = element("ul", { className: "inside" });
    if (group.kind in variants && group.members.length > 1) list.append(variantsOf(group));
    list.append(plainRow("", nameOf(group.first), `kept, ${sizeOf(group.first)}`));
    return appendSome(list, [...copiesOf(group.kind), ...group.members.flatMap(({ kind, similarity }) => [
      () => openable(scoreText(similarity), nameOf(kinds[kind][0]), sizeOf(kinds[kind][0]), () => element("div", {}, acceptButton(group.kind, kind), passagesOf(group.kind, kind))),
      ...copiesOf(kind, similarity, " as the one above"),
    ])]);
  });
}

function drawPair(pair) {
  if (shared) return drawShared(pair);
  const label = element("span", {}, nameOf(pair.first), nameOf(pair.second));
  if (pair.at < 0) {
    return openable("1", label, `${number.format(kinds[pair.kind].length)} documents, ${sameOf(pair.kind)}`,
      () => appendSome(element("ul", { className: "inside" }), [() => plainRow("1", nameOf(pair.first), ""), ...copiesOf(pair.kind)]));
  }
  return openable(scoreText(pair.similarity), label, pair.more ? `and ${plural(pair.more, "pair")} of copies` : "",
    () => element("div", { className: "inside" }, acceptButton(pairs.left[pair.at], pairs.right[pair.at]), passagesOf(pairs.left[pair.at], pairs.right[pair.at])));
}

/** Where a passage stands: its document, and its bytes there. */
function placeRow([name, start, end, of]) {
  const where = start === null ? "" : `bytes ${number.format(start)} to ${number.format(end)}${of === "bytes" ? "" : ` of the ${of}`}`;
  return plainRow("", element("bdi", { className: "name", textContent: name }), where);
}

/** The passages that stand in several places of all documents, whatever the threshold is. */
function drawRecurring({ count, least, listed }) {
  $("recurring").hidden = false;
  $("recurring-count").textContent = `${plural(count, "passage")} of ${number.format(least)} tokens or more, the most repeated first`
    + `${listed.length < count ? `; ${number.format(listed.length)} of them are here` : ""}.`;
  appendSome($("recurring-list"), listed.map(([tokens, places, held, text, where]) => () => openable(`${number.format(places)} ×`,
    element("span", { className: "text", textContent: text.replace(/\s+/g, " ").slice(0, 120) }), `${plural(tokens, "token")}, ${plural(held, "document")}`,
    () => element("div", {}, element("div", { className: "passages", tabIndex: 0, textContent: text }),
      appendSome(element("ul", { className: "inside" }), [...where.map((place) => () => placeRow(place)),
        ...(places > where.length ? [() => plainRow("", element("span", { className: "note", textContent: `and ${number.format(places - where.length)} more` }), "")] : [])])))));
}

function drawMore() {
  const draw = state.view === "groups" ? drawGroup : drawPair;
  const some = state.found.slice(state.drawn, state.drawn + ROWS);
  $("list").append(...some.map(draw));
  state.drawn += some.length;
}

function drawList() {
  const [listed, found] = find(), isGroups = state.view === "groups", noun = isGroups ? "group" : "row";
  const all = steps[isGroups ? "groups" : "rows"][state.step];
  state.found = found.sort(ORDERS[state.view][state.order][1]);
  state.drawn = 0;
  $("list").replaceChildren();
  $("none").hidden = found.length > 0;
  $("count").textContent = found.length < all ? `${number.format(found.length)} of ${plural(all, noun)}` : plural(all, noun);
  $("cut").hidden = listed >= all;
  $("cut").textContent = `Listed here: ${number.format(listed)} of ${plural(all, noun)}, the ${isGroups ? "largest" : "most similar"} first. ` +
    `The numbers above count all; lshdup report --most ${Math.max(steps.rows[0], data.inGroups)} lists all.`;
  drawMore();
}

// --- lists of names ---------------------------------------------------------------------------------------------------------

let lists = null;  // of `add_lists` in html.py; a name is a string with a character a byte

function bytesOf(text) {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

const unpack = (text) =>
  new Response(new Blob([bytesOf(atob(text))]).stream().pipeThrough(new DecompressionStream("deflate"))).json();

/** The names at the threshold, by the word of --emit: all stay before the first step, and each change turns a name over. */
function listNames() {
  const goes = new Uint8Array(lists.names.length), is = { keep: (at) => !goes[at], drop: (at) => goes[at], "drop-files": (at) => goes[at] && lists.parts[at] === "0" };
  for (const distances of lists.changes.slice(0, state.step + 1)) {
    let at = 0;
    for (const distance of distances) goes[at += distance] ^= 1;
  }
  return Object.fromEntries(Object.entries(is).map(([what, test]) => [what, lists.names.filter((name, at) => name && test(at))]));
}

/** Save names byte for byte. */
function save(file, some, end) {
  const blob = new Blob([bytesOf(some.map((name) => name + end).join(""))], { type: "application/octet-stream" });
  const link = element("a", { href: URL.createObjectURL(blob), download: file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function drawLists() {
  if (!lists || shared) return;
  const found = listNames(), parts = found.drop.length - found["drop-files"].length, isNul = $("nul").checked, warnings = [];
  for (const [what, names] of Object.entries(found)) {
    const button = $(`save-${what}`);
    button.disabled = !names.length;
    button.textContent = `${button.textContent.replace(/ \(.*/, "")} (${number.format(names.length)})`;
    button.onclick = () => save(`${what}.txt`, names, isNul ? "\0" : "\n");
  }
  $("save-drop-files").hidden = !parts;
  if (parts) warnings.push(`${parts === 1 ? "1 name is of a part of a file" : `${number.format(parts)} names are of parts of files`} `
    + "(rows, mails, members of archives): do not give them to `rm` or `mv`; --emit drop-files lists whole files only, --write writes a file without the parts");
  if (!isNul && lists.names.some((name) => /[\t\n]/.test(name))) warnings.push("some names hold tabs or newlines: lines are ambiguous; use -0");
  if (data.changed) warnings.push(`${plural(data.changed, "document")} changed or vanished since the last run: nothing near them goes; run it again with DOCS`);
  $("warning").textContent = warnings.join("\n");
  $("command").textContent = `${data.command} -t ${steps.threshold[state.step]} --emit keep${isNul ? " -0" : ""} > keep.txt`;
}

/** The pairs that are no duplicates, as JSON Lines of `lshdup pairs`: names may hold tabs. They are made when they are saved. */
function drawAccepted() {
  const nameOf = (d) => lists.names[documents.line[d]];
  $("accepted").hidden = !lists || !acceptedPairs;
  $("save-accepted").textContent = `Save ${plural(acceptedPairs, "pair")} of no duplicates`;
  $("save-accepted").onclick = () => save("accepted.jsonl", [...accepted.values()].flatMap(([from, to]) =>
    kinds[from].flatMap((a) => kinds[to].map((b) => JSON.stringify({ a: nameOf(a), b: nameOf(b) })))), "\n");
}

/** What was not compared: how many for each reason, and the names. */
function drawSkipped(named) {
  const of = new Map(named);
  $("skipped").querySelector("ol").replaceChildren(...data.skipped.map(([reason, count]) => {
    const rows = (of.get(reason) || []).map(([name, detail]) => () => plainRow("", element("bdi", { className: "name", textContent: name }), detail));
    const label = element("span", { textContent: reason });
    return rows.length ? openable(number.format(count), label, "", () => appendSome(element("ul", { className: "inside" }), rows))
      : plainRow(number.format(count), label, "-vv names them");
  }));
}

// --- overview ---------------------------------------------------------------------------------------------------------------

function figure(id, label) {
  $("figures").append(element("div", {}, element("dt", { textContent: label }), element("dd", { id })));
}

const WIDTH = 100, LAST_BAR = 3, bars = [];  // similarities from LOWEST to 1, and the bar of exactly 1
const placeOf = (similarity) => (similarity - LOWEST) / (1 - LOWEST || 1) * WIDTH;

function shape(tag, properties) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  $("histogram").append(made);
  return made;
}

function drawHistogram() {
  const heights = steps.pairs.map((count, step) => count - (step < LAST ? steps.pairs[step + 1] : 0));
  const most = Math.log1p(Math.max(1, ...heights)), heightOf = (count) => 94 * Math.log1p(count) / most;
  $("histogram").setAttribute("viewBox", `0 0 ${WIDTH + LAST_BAR} 100`);
  const highest = Math.expm1(most) + 0.5, decades = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10].filter((count) => count <= highest);
  for (const count of highest < 500 ? decades.flatMap((count) => [count, 3 * count]).filter((count) => count <= highest) : decades) {  // so many pairs are so high
    const y = 100 - heightOf(count);
    shape("line", { class: "rule", x1: 0, x2: WIDTH + LAST_BAR, y1: y, y2: y });
    const mark = element("span", { textContent: number.format(count) });
    mark.style.top = `${y}%`;
    $("scale").append(mark);
  }
  heights.forEach((count, step) => {
    const from = steps.threshold[step], to = step < LAST ? steps.threshold[step + 1] : 1, height = heightOf(count);
    const x = placeOf(from), width = step < LAST ? placeOf(to) - x : LAST_BAR, title = document.createElementNS("http://www.w3.org/2000/svg", "title");
    const bar = shape("rect", { x: x + 0.06 * width, y: 100 - height, width: 0.88 * width, height });
    title.textContent = step < LAST ? `${from} to ${to}: ${plural(count, "pair")}` : `exactly 1: ${plural(count, "pair")}`;
    bar.append(title);
    bars.push(bar);
  });
  shape("line", { id: "line", y1: 0, y2: 100 });
  const ticks = LOWEST < 1 ? [0, 0.25, 0.5, 0.75, 1] : [1];
  for (const at of ticks) {
    const similarity = LOWEST + (1 - LOWEST) * at, tick = element("span", { textContent: String(+similarity.toFixed(3)) });
    tick.style.left = `${100 * placeOf(similarity) / (WIDTH + LAST_BAR)}%`;
    $("axis").append(tick);
  }
}

function promise(threshold) {
  const legend = " Heights are pairs, on a logarithmic scale; the last bar is pairs of " + `${shared === "containment" ? shared : "similarity"} 1.` + (shared ? " Shares are of shingles: runs of a few words that the other has too." : "");
  if (!data.bands) return `All pairs were joined exactly: none is missed.${legend}`;
  const miss = (s) => (1 - s ** data.rows) ** data.bands;
  const percent = (chance) => chance === 0 ? "0 %" : chance < 1e-9 ? "less than 1 in a billion"  // as `lshdup` says it
    : chance < 1e-4 ? `1 in ${number.format((1 / chance).toPrecision(2))}` : `${Number((100 * chance).toPrecision(2))} %`;
  const s = Math.min(1, threshold + 0.05);
  const exact = shared && pairs.estimated.length ? "Every pair was verified exactly, but for those by estimate." : "Every pair was verified exactly.";
  return `${exact} The chance that a pair of similarity ${threshold.toFixed(3)} was missed is ${percent(miss(threshold))}` +
    (s > threshold ? `; of ${s.toFixed(3)}, ${percent(miss(s))}.` : ".") + legend;
}

function setStep(step) {
  state.step = Math.min(LAST, Math.max(0, step));
  const threshold = steps.threshold[state.step], x = placeOf(threshold);
  groups = groupsAt(state.step);
  $("threshold").value = state.step;
  $("threshold").setAttribute("aria-valuetext", threshold.toFixed(3));
  $("chosen").textContent = threshold.toFixed(3);
  $("promise").textContent = promise(threshold);
  $("line").setAttribute("x1", x);
  $("line").setAttribute("x2", x);
  bars.forEach((bar, at) => bar.classList.toggle("in", at >= state.step));
  $("n-pairs").textContent = number.format(steps.pairs[state.step]);
  if (shared) return drawList();
  $("n-groups").textContent = number.format(steps.groups[state.step]);
  $("n-members").textContent = number.format(steps.members[state.step]);
  $("n-beside").textContent = number.format(steps.members[state.step] - steps.groups[state.step]);
  drawLists();
  drawList();
}

/** Choose the step that is nearest to a similarity. */
function setThreshold(value) {
  const above = steps.threshold.findIndex((each) => each >= value - 1e-9);
  if (above < 1) return setStep(above < 0 ? LAST : 0);
  return setStep(steps.threshold[above] - value > value - steps.threshold[above - 1] + 1e-9 ? above - 1 : above);
}

let frame = 0;
function soon(action) {  // a slider says more than a screen can show
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(action);
}

/** What stands in the columns of the list. */
const LEGENDS = {
  groups: ["size", "the one that is kept", "smallest similarity to it"],
  pairs: [shared === "containment" ? shared : "similarity", "documents", ""],
};

// --- what a person does -----------------------------------------------------------------------------------------------------

function setView(view) {
  if (shared) view = "pairs";
  state.view = view;
  for (const each of ["groups", "pairs"]) $(each).setAttribute("aria-selected", String(each === view));
  state.order = Object.keys(ORDERS[view])[0];
  $("order").replaceChildren(...Object.entries(ORDERS[view]).map(([value, [label]]) => element("option", { value, textContent: label })));
  $("legend").replaceChildren(...LEGENDS[view].map((textContent) => element("span", { textContent })));
  drawList();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "☀" : "☾";
}

function walk(by) {
  const rows = [...document.querySelectorAll("#list .toggle")].filter((row) => row.offsetParent !== null);
  const at = rows.indexOf(document.activeElement) + by;
  if (at >= rows.length && state.drawn < state.found.length) {
    drawMore();
    return walk(by);
  }
  const row = rows[Math.max(0, Math.min(rows.length - 1, at))];
  if (row) row.focus();
}

const KEYS = {
  j: () => walk(1), k: () => walk(-1), "/": () => $("search").focus(), g: () => setView("groups"), p: () => setView("pairs"),
  "[": () => setStep(state.step - 1), "]": () => setStep(state.step + 1),
  c: () => document.activeElement.closest(".row")?.querySelector(".copy")?.click(),
  d: () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === $("search")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.target.tagName === "SELECT" || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

$("threshold").addEventListener("input", (event) => soon(() => setStep(Number(event.target.value))));
function drag(event) {
  const box = $("histogram").getBoundingClientRect();
  const at = Math.max(0, event.clientX - box.left) / box.width * (WIDTH + LAST_BAR) / WIDTH;
  soon(() => setThreshold(LOWEST + (1 - LOWEST) * at));
}
$("histogram").addEventListener("pointerdown", (event) => {
  $("histogram").setPointerCapture(event.pointerId);
  drag(event);
});
$("histogram").addEventListener("pointermove", (event) => {
  if (event.buttons) drag(event);
});
let pause = 0;
$("search").addEventListener("input", (event) => {
  clearTimeout(pause);
  pause = setTimeout(() => {
    state.search = event.target.value.trim().toLowerCase();
    drawList();
  }, 120);
});
for (const id of ["which", "order"]) {
  $(id).addEventListener("change", (event) => {
    state[id] = event.target.value;
    drawList();
  });
}
for (const view of ["groups", "pairs"]) $(view).addEventListener("click", () => setView(view));
$("nul").addEventListener("change", drawLists);
$("copy-command").addEventListener("click", (event) => copy($("command").textContent, event.target));
$("theme").addEventListener("click", KEYS.d);
new IntersectionObserver((seen) => {
  if (seen.some((each) => each.isIntersecting)) drawMore();
}, { rootMargin: "800px" }).observe($("more"));

// --- folders: pairs at the lowest threshold, and what is in one of the two only ---------------------------------------------

const LISTS = [["only a", "only in A"], ["only b", "only in B"], ["changed", "changed"], ["same", "the same"]];

function folderLists(pair) {
  if (!pair.lists) return [element("p", { className: "note", textContent: "`lshdup show A B` lists what is in one of the two only." })];
  return LISTS.flatMap(([kind, title]) => {
    const [count, rows] = pair.lists[kind] || [0, []];
    const list = element("ul", {}, ...rows.map(([a, b, similarity]) => element("li", {},
      ...(kind === "changed" ? [element("span", { className: "score", textContent: scoreText(similarity) }), " "] : []),
      element("span", { className: "name", textContent: a && b && a !== b ? `${a} → ${b}` : a || b }))));
    const more = kind !== "same" && count > rows.length ? `, the first ${number.format(rows.length)} of them:` : "";
    return [element("p", { textContent: `${title}: ${number.format(count)}${more}` }), list];
  });
}

function drawFolders({ count, least, pairs }) {
  $("folders").hidden = !pairs.length;
  const listed = count > pairs.length ? `, the largest ${number.format(pairs.length)} are listed` : "";
  $("folders-note").textContent = `${number.format(count)} ${count === 1 ? "pair" : "pairs"}${listed}: B holds ${least} or more of the bytes of A, `
    + `in documents of similarity ${LOWEST} or more`;
  $("folders").querySelector("ol").append(...pairs.map((pair) => {
    const [a, b] = pair.documents;
    return element("li", {}, element("details", {}, element("summary", {},
      element("span", { className: "name", textContent: `A ${pair.a}` }), element("span", { className: "name", textContent: `B ${pair.b}` }),
      element("span", { className: "note", textContent: `similarity ${scoreText(pair.similarity)}, ${scoreText(pair.containment)} of A is in B: `
        + `${number.format(pair.shared)} of ${plural(a, "document")}, ${plural(pair.bytes, "byte")}; B has ${number.format(b)}` })),
    ...folderLists(pair)));
  }));
}

// --- begin ------------------------------------------------------------------------------------------------------------------

if (shared) {
  $("title").textContent = "What documents share";
  for (const id of ["act", "groups", "which"]) $(id).hidden = true;
}
document.title = `${$("title").textContent}: ${data.what}`;
$("what").textContent = `${data.what}: ${plural(data.document_count, "document")}${data.newest ? `, the newest of ${data.newest}` : ""}`;
figure("n-documents", "documents");
figure("n-pairs", "pairs");
if (!shared) {
  figure("n-groups", "groups");
  figure("n-members", "documents in groups");
  figure("n-beside", "to drop");
  $("n-beside").title = "all documents of groups but the one of each that is kept";
} else if (data.changed) $("what").textContent += `; ${plural(data.changed, "document")} changed or vanished since they were compared`;
$("n-documents").textContent = number.format(data.document_count);
if (data.skipped.length) {
  const count = number.format(data.skipped.reduce((sum, [, each]) => sum + each, 0));
  figure("n-skipped", "not compared");
  $("n-skipped").textContent = count;
  $("skipped").hidden = false;
  $("skipped-note").textContent = shared ? count : `${count}; names to keep has all of them but hidden files, links, and what patterns leave out`;
  drawSkipped([]);
}
$("rule").textContent = `Of each group one document is kept: ${data.kept}. All others of the group are names to drop; everything else is among the names to keep.`;
for (const [name, value] of data.parameters) $("parameters").append(element("dt", { textContent: name }), element("dd", { textContent: value }));
if (data.missing) $("parameters").append(element("dt", { textContent: shared ? "shared passages" : "differences" }), element("dd", { textContent: data.missing }));
if (data.recurring) drawRecurring(data.recurring);
Object.assign($("threshold"), { min: 0, max: LAST, step: 1 });
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
drawHistogram();
drawFolders(data.folders);
setView("groups");
setStep(0);
unpack(data.lists).then((unpacked) => {
  lists = unpacked;
  drawSkipped(lists.skipped);
  drawLists();
}, () => {
  $("warning").textContent = `This browser is too old to save lists of names. The command prints them: ${data.command} -t ${LOWEST} --emit keep`;
}).finally(() => { document.documentElement.dataset.ready = "yes"; });
