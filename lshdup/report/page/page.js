"use strict";
// Everything below works on #data, which report.py describes. Texts and names reach the page through textContent only.
const data = JSON.parse(document.getElementById("data").textContent);
const { documents, kinds, counts, pairs, passages, without, plan } = data;  // documents are in byte order of names; kinds name at most some hundred copies; counts are of all
const LOWEST = plan.threshold, STEP = 0.005, ROWS = 60;
const $ = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const state = { threshold: LOWEST, view: "groups", search: "", which: "all", order: "size", shown: [], drawn: 0 };

// --- what is found at a threshold -------------------------------------------------------------------------------------------

const rankOf = kinds.map((kind) => documents.rank[kind[0]]);
const kindsByRank = kinds.map((_, kind) => kind).sort((a, b) => rankOf[a] - rankOf[b]);
const partners = kinds.map(() => []);
pairs.similarity.forEach((similarity, at) => {
  partners[pairs.left[at]].push({ kind: pairs.right[at], similarity, at });
  partners[pairs.right[at]].push({ kind: pairs.left[at], similarity, at });
});

/** Pairs are by similarity, descending: how many of them are at least `threshold` similar. */
function reaching(threshold) {
  let low = 0, high = pairs.similarity.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pairs.similarity[middle] >= threshold) low = middle + 1; else high = middle;
  }
  return low;
}

const pairsOfCopies = counts.reduce((sum, count) => sum + count * (count - 1) / 2, 0);

function countPairs(threshold) {
  let count = pairsOfCopies;
  for (let at = reaching(threshold) - 1; at >= 0; at--) count += counts[pairs.left[at]] * counts[pairs.right[at]];
  return count;
}

/** As `lshdup clusters`: by preference, each document that nobody took takes all that are similar enough to it. */
function groupsAt(threshold) {
  const taken = new Uint8Array(kinds.length), groups = [];
  for (const kind of kindsByRank) {
    if (taken[kind]) continue;
    taken[kind] = 1;
    const members = [];
    for (const partner of partners[kind]) {
      if (partner.similarity < threshold || taken[partner.kind]) continue;
      taken[partner.kind] = 1;
      members.push(partner);
    }
    members.sort((a, b) => b.similarity - a.similarity || kinds[a.kind][0] - kinds[b.kind][0]);
    const size = members.reduce((sum, each) => sum + counts[each.kind], counts[kind]);
    if (size > 1) groups.push({ kind, first: kinds[kind][0], members, size, least: members.length ? members.at(-1).similarity : 1 });
  }
  return groups;
}

function groupDocuments(group) {
  return [...kinds[group.kind], ...group.members.flatMap((each) => kinds[each.kind])];
}

const folderOf = (d) => documents.name[d].slice(0, documents.name[d].lastIndexOf("/") + 1);
const lower = documents.name.map((name) => name.toLowerCase());

/** Groups and pairs alike are filtered by the documents in them and by whether these are all copies of one another. */
function fits(some, copies, near) {
  if (state.which === "near" && !near || state.which === "copies" && !copies) return false;
  if (state.which === "apart" && some.every((d) => folderOf(d) === folderOf(some[0]))) return false;
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

function found() {
  const order = ORDERS[state.view][state.order][1];
  if (state.view === "groups") {
    return groupsAt(state.threshold)
      .filter((group) => fits(groupDocuments(group), counts[group.kind] > 1 || group.members.some((each) => counts[each.kind] > 1), group.members.length > 0)).sort(order);
  }
  const rows = [];
  kinds.forEach((some, kind) => {
    if (some.length > 1 && fits(some, true, false)) rows.push({ kind, first: some[0], second: some[1], similarity: 1, at: -1 });
  });
  for (let at = reaching(state.threshold) - 1; at >= 0; at--) {
    const left = kinds[pairs.left[at]], right = kinds[pairs.right[at]];
    if (!fits([...left, ...right], false, true)) continue;
    rows.push({ first: left[0], second: right[0], more: counts[pairs.left[at]] * counts[pairs.right[at]] - 1, similarity: pairs.similarity[at], at });
  }
  return rows.sort(order);
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
const shownScore = (similarity) => similarity === 1 ? "1" : Math.min(similarity, 0.9999).toFixed(4);
const plural = (count, noun) => `${number.format(count)} ${noun}${count === 1 ? "" : "s"}`;

function nameOf(d) {
  const folder = folderOf(d);
  return element("bdi", { className: "name" },
    element("span", { className: "folder", textContent: folder }), documents.name[d].slice(folder.length));
}

const sizeOf = (d) => plural(documents.shingles[d], "shingle");

/** What differs, from the first of two documents to the second; `flipped`: the pair has them the other way round. */
function passagesOf(at, flipped) {
  const box = element("div", { className: "passages", tabIndex: 0 });
  const segments = passages[at], ends = [kinds[pairs.left[at]][0], kinds[pairs.right[at]][0]];
  if (flipped) ends.reverse();
  const [from, to] = ends.map((d) => documents.name[d]);
  if (segments === undefined) {
    const why = at in without ? without[at] : without[""];
    box.append(element("p", { className: "note" }, `The passages of this pair are not in this page${why ? ` (${why})` : ""}: lshdup show `,
      element("bdi", { textContent: from }), " ", element("bdi", { textContent: to })));
    return box;
  }
  const [minus, plus] = flipped ? ["+", "-"] : ["-", "+"], [away, here] = flipped ? [">", "<"] : ["<", ">"];
  box.append(element("p", { className: "note text" }, element("del", { textContent: from }), " ", element("ins", { textContent: to })));
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

/** A row that opens: its inside is made when it is wanted first. */
function openable(score, label, note, inside) {
  const row = element("button", { className: "row", type: "button" }, element("span", { className: "score", textContent: score }), label,
    element("span", { className: "badge", textContent: note }));
  row.setAttribute("aria-expanded", "false");
  const item = element("li", {}, row);
  let made = null;
  row.addEventListener("click", () => {
    const open = row.getAttribute("aria-expanded") !== "true";
    row.setAttribute("aria-expanded", String(open));
    if (open && !made) item.append(made = inside());
    if (made) made.hidden = !open;
  });
  return item;
}

function plainRow(score, label, note) {
  return element("li", {}, element("div", { className: "row" }, element("span", { className: "score", textContent: score }), label,
    element("span", { className: "badge", textContent: note })));
}

/** The copies of a kind from the second on. */
function copiesOf(kind, note) {
  const rows = kinds[kind].slice(1).map((d) => plainRow("1", nameOf(d), note)), unnamed = counts[kind] - kinds[kind].length;
  if (unnamed) rows.push(element("li", { className: "note", textContent: `and ${number.format(unnamed)} more` }));
  return rows;
}

function drawGroup(group) {
  const label = element("span", {}, nameOf(group.first));
  const what = group.members.length ? `least ${shownScore(group.least)}` : "copies";
  return openable(number.format(group.size), label, what, () => {
    const list = element("ul", { className: "inside" });
    list.append(plainRow("", nameOf(group.first), `kept, ${sizeOf(group.first)}`), ...copiesOf(group.kind, "copy"));
    for (const { kind, similarity, at } of group.members) {
      const first = kinds[kind][0];
      const flipped = pairs.left[at] === kind;
      list.append(openable(shownScore(similarity), element("span", {}, nameOf(first)), sizeOf(first), () => passagesOf(at, flipped)));
      list.append(...copiesOf(kind, "copy of the one above"));
    }
    return list;
  });
}

function drawPair(pair) {
  if (pair.at < 0) {
    return openable("1", element("span", {}, nameOf(pair.first), nameOf(pair.second)), `${number.format(counts[pair.kind])} copies`,
      () => element("ul", { className: "inside" }, plainRow("1", nameOf(pair.first), ""), ...copiesOf(pair.kind, "")));
  }
  const note = pair.more ? `and ${plural(pair.more, "pair")} of copies` : "";
  return openable(shownScore(pair.similarity), element("span", {}, nameOf(pair.first), nameOf(pair.second)), note,
    () => element("div", { className: "inside" }, passagesOf(pair.at, false)));
}

function drawMore() {
  const draw = state.view === "groups" ? drawGroup : drawPair;
  const some = state.shown.slice(state.drawn, state.drawn + ROWS);
  $("list").append(...some.map(draw));
  state.drawn += some.length;
}

function drawList() {
  state.shown = found();
  state.drawn = 0;
  $("list").replaceChildren();
  $("none").hidden = state.shown.length > 0;
  $("count").textContent = plural(state.shown.length, state.view === "groups" ? "group" : "row");
  drawMore();
}

// --- overview ---------------------------------------------------------------------------------------------------------------

function figure(id, label) {
  $("figures").append(element("div", {}, element("dt", { textContent: label }), element("dd", { id })));
}

const BINS = Math.max(1, Math.min(60, Math.round((1 - LOWEST) / 0.01)));
const bars = [];

function drawHistogram() {
  const heights = new Array(BINS).fill(0);
  pairs.similarity.forEach((similarity, at) => {
    const bin = Math.min(BINS - 1, Math.floor((similarity - LOWEST) / (1 - LOWEST || 1) * BINS));
    heights[bin] += counts[pairs.left[at]] * counts[pairs.right[at]];
  });
  heights.push(pairsOfCopies);  // exactly 1
  const most = Math.log1p(Math.max(1, ...heights)), svg = $("histogram"), SVG = "http://www.w3.org/2000/svg";
  svg.setAttribute("viewBox", `0 0 ${BINS + 1} 100`);
  heights.forEach((count, bin) => {
    const bar = document.createElementNS(SVG, "rect"), height = 96 * Math.log1p(count) / most;
    const from = LOWEST + (1 - LOWEST) * bin / BINS, to = LOWEST + (1 - LOWEST) * (bin + 1) / BINS;
    for (const [name, value] of Object.entries({ x: bin + 0.05, y: 100 - height, width: 0.9, height })) bar.setAttribute(name, value);
    const title = document.createElementNS(SVG, "title");
    title.textContent = bin === BINS ? `copies: ${plural(count, "pair")}` : `${from.toFixed(2)} to ${to.toFixed(2)}: ${plural(count, "pair")}`;
    bar.append(title);
    svg.append(bar);
    bars.push({ bar, from: bin === BINS ? 1 : to });
  });
  for (let count = 1; count <= Math.expm1(most) + 0.5; count *= 10) {  // so many pairs are so high
    const y = 100 - 96 * Math.log1p(count) / most, rule = document.createElementNS(SVG, "line");
    for (const [name, value] of Object.entries({ class: "rule", x1: 0, x2: BINS + 1, y1: y, y2: y })) rule.setAttribute(name, value);
    svg.append(rule);
    const mark = element("span", { textContent: number.format(count) });
    mark.style.top = `${y}%`;
    $("scale").append(mark);
  }
  const line = document.createElementNS(SVG, "line");
  for (const [name, value] of Object.entries({ id: "line", y1: 0, y2: 100 })) line.setAttribute(name, value);
  svg.append(line);
  for (const at of [0, 0.25, 0.5, 0.75, 1]) {  // 1 is where the last bar, that of copies, begins
    const tick = element("span", { textContent: String(+(LOWEST + (1 - LOWEST) * at).toFixed(3)) });
    tick.style.left = `${100 * at * BINS / (BINS + 1)}%`;
    $("axis").append(tick);
  }
}

function promise(threshold) {
  if (plan.exact) return "All pairs were joined exactly: none is missed. Heights are pairs, on a logarithmic scale; the last bar is copies.";
  const miss = (s) => (1 - s ** plan.rows) ** plan.bands;
  const percent = (chance) => chance === 0 ? "0 %" : chance < 1e-9 ? "less than 1 in a billion"  // as `lshdup` says it
    : chance < 1e-4 ? `1 in ${number.format((1 / chance).toPrecision(2))}` : `${Number((100 * chance).toPrecision(2))} %`;
  const s = Math.min(1, threshold + 0.05);
  return `Every pair was verified exactly. The chance that a pair of similarity ${threshold.toFixed(3)} was missed is ${percent(miss(threshold))}` +
    (s > threshold ? `; of ${s.toFixed(3)}, ${percent(miss(s))}.` : ".") + " Heights are pairs, on a logarithmic scale; the last bar is copies.";
}

function setThreshold(value) {
  state.threshold = Math.min(1, Math.max(LOWEST, Math.round(value * 1e6) / 1e6));
  $("threshold").value = state.threshold;
  $("chosen").textContent = state.threshold.toFixed(3);
  $("promise").textContent = promise(state.threshold);
  const line = $("line"), x = (state.threshold - LOWEST) / (1 - LOWEST || 1) * BINS;
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
  for (const { bar, from } of bars) bar.classList.toggle("in", from > state.threshold || from === 1);
  const groups = groupsAt(state.threshold), inGroups = groups.reduce((sum, group) => sum + group.size, 0);
  $("n-pairs").textContent = number.format(countPairs(state.threshold));
  $("n-groups").textContent = number.format(groups.length);
  $("n-members").textContent = number.format(inGroups);
  $("n-beside").textContent = number.format(inGroups - groups.length);
  drawList();
}

let frame = 0;
function thresholdSoon(value) {  // a slider says more than a screen can show
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => setThreshold(value));
}

/** What stands in the columns of the list. */
const LEGENDS = { groups: ["size", "the one that is kept", "smallest similarity to it"], pairs: ["similarity", "documents", ""] };

// --- what a person does -----------------------------------------------------------------------------------------------------

function setView(view) {
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

function step(by) {
  const rows = [...document.querySelectorAll("#list button.row")].filter((row) => row.offsetParent !== null);
  const at = rows.indexOf(document.activeElement) + by;
  if (at >= rows.length && state.drawn < state.shown.length) {
    drawMore();
    return step(by);
  }
  const row = rows[Math.max(0, Math.min(rows.length - 1, at))];
  if (row) row.focus();
}

const KEYS = {
  j: () => step(1), k: () => step(-1), "/": () => $("search").focus(), g: () => setView("groups"), p: () => setView("pairs"),
  "[": () => setThreshold(state.threshold - STEP), "]": () => setThreshold(state.threshold + STEP),
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

$("threshold").addEventListener("input", (event) => thresholdSoon(Number(event.target.value)));
function drag(event) {
  const box = $("histogram").getBoundingClientRect();
  thresholdSoon(LOWEST + (1 - LOWEST) * Math.max(0, event.clientX - box.left) / box.width * (BINS + 1) / BINS);
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
$("theme").addEventListener("click", KEYS.d);
new IntersectionObserver((seen) => {
  if (seen.some((each) => each.isIntersecting)) drawMore();
}, { rootMargin: "800px" }).observe($("more"));

// --- begin ------------------------------------------------------------------------------------------------------------------

document.title = `Near-duplicates: ${data.what}`;
$("what").textContent = `${data.what}: ${plural(data.documentCount, "document")}${data.newest ? `, the newest of ${data.newest}` : ""}`;
figure("n-documents", "documents");
figure("n-pairs", "pairs");
figure("n-groups", "groups");
figure("n-members", "documents in groups");
figure("n-beside", "to drop");
$("n-beside").title = "all documents of groups but the one of each that is kept";
if (data.leftOut) figure("n-left", "files left out");
$("n-documents").textContent = number.format(data.documentCount);
if (data.leftOut) {
  $("n-left").textContent = number.format(data.leftOut.reduce((sum, [, count]) => sum + count, 0));
  $("n-left").title = data.leftOut.map(([reason, count]) => `${reason}: ${number.format(count)}`).join(", ");
}
for (const [name, value] of [...data.parameters, ...(data.leftOut || []).map(([reason, count]) => [`left out: ${reason}`, number.format(count)])]) {
  $("parameters").append(element("dt", { textContent: name }), element("dd", { textContent: value }));
}
if (data.omitted) {
  $("overview").after(element("p", { className: "note", id: "omitted", textContent: data.omitted }));
}
Object.assign($("threshold"), { min: LOWEST, max: 1, step: STEP });
setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
drawHistogram();
setView("groups");
setThreshold(LOWEST);
document.documentElement.dataset.ready = "yes";
