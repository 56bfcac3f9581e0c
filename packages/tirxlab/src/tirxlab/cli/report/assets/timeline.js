
"use strict";
// Draws each run of #runs as lanes of bars with arrows from signals to waits; zoom, hover, keys, touch.
// A bar is [lane, row, begin, end, kind, name, amount, line, phase, events]; texts are set as text only.
(function () {
  const NS = "http://www.w3.org/2000/svg";
  const ROW = 15, HEAD = 24, GAP = 8, LABEL = 232, NARROW = 640, ARROW_GAP = 12;
  const LANE = 0, SUB = 1, BEGIN = 2, END = 3, KIND = 4, NAME = 5, AMOUNT = 6, LINE = 7, PHASE = 8, COUNT = 9;
  const PLAIN = { load: 1, mma: 1, store: 1, issue: 1, wait: 1, stuck: 1 };
  const LEGEND = [["load", "load"], ["mma", "MMA"], ["store", "store"], ["issue", "issues or arrives"],
    ["move", "memory, by a warp itself"], ["wait", "waits"], ["stuck", "waits forever"]];

  function element(name, attributes, parent, text) {
    const made = document.createElementNS(NS, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  function unitOf(run) {
    return run.unit === "ns" && run.end >= 20000 ? ["µs", 1000] : [run.unit, 1];
  }

  function number(value) {
    return value.toLocaleString("en-US", { maximumFractionDigits: 2 });
  }

  function stepOf(span, most) {
    let step = Math.pow(10, Math.floor(Math.log10(span / most)));
    while (span / step > most) step *= span / (step * 2) <= most ? 2 : span / (step * 5) <= most ? 5 : 10;
    return step;
  }

  class Chart {
    constructor(root, run) {
      this.run = run;
      this.box = root.querySelector(".chart");
      this.about = root.querySelector(".about");
      this.buttons = root.querySelector(".tools");
      this.from = 0;
      this.to = run.end;
      this.chosen = -1;
      this.arrows = true;
      this.lanes = run.lanes.map(() => []);
      run.bars.forEach((bar, i) => this.lanes[bar[LANE]].push(i));
      this.causes = new Map();
      this.effects = new Map();
      for (const [signal, wait] of run.arrows) {
        if (!this.causes.has(wait)) this.causes.set(wait, signal);
        if (!this.effects.has(signal)) this.effects.set(signal, []);
        this.effects.get(signal).push(wait);
      }
      for (const part of [this.box, this.about, this.buttons]) part.hidden = false;
      this.legend();
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.hidden = true;
      this.listen();
      this.draw();
      this.tell();
    }

    legend() {
      const list = document.createElement("div");
      list.className = "legend";
      const used = new Set(this.run.bars.map((bar) => this.kind(bar)));
      for (const [kind, words] of LEGEND) {
        if (!used.has(kind)) continue;
        const item = document.createElement("span"), key = document.createElement("i");
        key.className = kind;
        item.append(key, words);
        list.append(item);
      }
      this.box.before(list);
    }

    kind(bar) {
      const kind = this.run.texts[bar[KIND]];
      return PLAIN[kind] ? kind : "move";
    }

    // ---- drawing ----

    place() {
      const narrow = this.box.clientWidth < NARROW;
      this.left = narrow ? 6 : LABEL;
      this.width = Math.max(60, this.box.clientWidth - this.left - 10);
      let y = HEAD;
      this.tops = this.run.lanes.map((lane) => {
        const top = y + (narrow ? 16 : 0);
        y = top + lane.rows * ROW + GAP;
        return top;
      });
      this.height = y;
      this.narrow = narrow;
    }

    x(time) {
      return this.left + (time - this.from) / (this.to - this.from) * this.width;
    }

    y(bar) {
      return this.tops[bar[LANE]] + bar[SUB] * ROW;
    }

    draw() {
      this.place();
      const svg = element("svg", { width: this.left + this.width + 10, height: this.height, "aria-hidden": "true" });
      const clip = "clip" + Math.random().toString(36).slice(2);
      const area = element("clipPath", { id: clip }, element("defs", {}, svg));
      element("rect", { x: this.left, y: 0, width: this.width, height: this.height }, area);
      this.axis(svg);
      this.run.lanes.forEach((lane, i) => {
        const fits = this.narrow ? 200 : Math.floor((LABEL - 12) / 6.7);
        const title = lane.title.length > fits ? lane.title.slice(0, fits - 1) + "…" : lane.title;
        element("rect", { class: "lane", x: this.left, y: this.tops[i], width: this.width, height: lane.rows * ROW - 2 }, svg);
        element("text", { x: 6, y: this.tops[i] + (this.narrow ? -4 : 11) }, svg, title);
      });
      const inside = element("g", { "clip-path": `url(#${clip})` }, svg);
      this.bars(inside);
      if (this.arrows || this.chosen >= 0) this.drawArrows(inside);
      this.box.replaceChildren(svg, this.tip);
      this.svg = svg;
    }

    axis(svg) {
      const [name, size] = unitOf(this.run);
      const step = stepOf((this.to - this.from) / size, Math.max(2, Math.floor(this.width / 90)));
      const first = Math.ceil(this.from / size / step) * step;
      for (let mark = first; mark * size <= this.to; mark += step) {
        const at = this.x(mark * size), last = at > this.left + this.width - 40;
        element("line", { class: "gridline", x1: at, x2: at, y1: 16, y2: this.height }, svg);
        element("text", { class: "tick", x: at + (last ? -3 : 3), y: 12, "text-anchor": last ? "end" : "start" }, svg,
          number(mark) + (this.narrow && mark === first ? " " + name : ""));
      }
      if (!this.narrow) element("text", { class: "tick", x: this.left - 8, y: 12, "text-anchor": "end" }, svg, name);
    }

    bars(parent) {
      const drawn = new Map(); // lane, row and kind -> right end of the last bar, to skip what lies within a pixel
      this.run.bars.forEach((bar, i) => {
        if (bar[END] < this.from || bar[BEGIN] > this.to) return;
        const x1 = Math.max(this.x(bar[BEGIN]), this.left - 4), x2 = Math.min(this.x(bar[END]), this.left + this.width + 4);
        const key = bar[LANE] + "/" + bar[SUB] + "/" + bar[KIND];
        if (i !== this.chosen && x2 - x1 < 1 && x2 <= (drawn.get(key) ?? -1)) return;
        const width = Math.max(1, x2 - x1 - (x2 - x1 > 4 ? 1 : 0));
        drawn.set(key, x1 + width);
        const kind = this.kind(bar), y = this.y(bar);
        element("rect", { class: `bar ${kind}` + (i === this.chosen ? " chosen" : ""), x: x1, y, width, height: ROW - 3, rx: 1 }, parent);
        const fits = Math.floor((Math.min(x2, this.left + this.width) - Math.max(x1, this.left) - 6) / 6.1), name = this.run.texts[bar[NAME]];
        if (fits >= Math.min(4, name.length) && kind !== "issue") {
          const words = name.length > fits ? name.slice(0, fits - 1) + "…" : name;
          element("text", { class: `on ${kind}`, x: Math.max(x1, this.left) + 3, y: y + 10 }, parent, words);
        }
      });
    }

    drawArrows(parent) {
      const mine = new Set();
      if (this.chosen >= 0) {
        if (this.causes.has(this.chosen)) mine.add(this.causes.get(this.chosen) + "/" + this.chosen);
        for (const wait of this.effects.get(this.chosen) || []) mine.add(this.chosen + "/" + wait);
      }
      const most = Math.floor(this.width / ARROW_GAP);
      let count = 0;
      for (const [signal, wait] of this.run.arrows) { // the longest waits come first
        const end = this.run.bars[wait][END], own = mine.has(signal + "/" + wait);
        if (!own && (!this.arrows || end < this.from || end > this.to || count >= most)) continue;
        if (!own) count += 1;
        this.arrow(parent, this.run.bars[signal], this.run.bars[wait], own);
      }
    }

    arrow(parent, signal, wait, own) {
      const down = this.y(wait) > this.y(signal);
      const x1 = this.x(Math.min(signal[END], wait[END])), x2 = this.x(wait[END]);
      const y1 = this.y(signal) + (down ? ROW - 3 : 0), y2 = this.y(wait) + (down ? -1 : ROW - 2);
      const middle = (y1 + y2) / 2, back = down ? -6 : 6;
      const path = `M${x1},${y1}C${x1},${middle} ${x2},${middle} ${x2},${y2 + back}`;
      element("path", { class: "arrow" + (own ? " mine" : ""), d: path }, parent);
      element("path", { class: "head", d: `M${x2},${y2}l-3.5,${back}h7z` }, parent);
    }

    // ---- what is said ----

    said(i) {
      const bar = this.run.bars[i], run = this.run, [unit, size] = unitOf(run);
      const kind = run.texts[bar[KIND]], name = run.texts[bar[NAME]];
      const what = kind === "wait" ? `waits for ${name}` : kind === "stuck" ? `waits forever for ${name}` :
        kind === name || kind === "issue" ? name : `${kind}: ${name}`;
      const times = `${number(bar[BEGIN] / size)} to ${number(bar[END] / size)} ${unit} (${number((bar[END] - bar[BEGIN]) / size)})`;
      const more = [times];
      if (bar[PHASE] >= 0) more.push(`phase ${bar[PHASE]}`);
      if (bar[AMOUNT]) more.push(`${number(bar[AMOUNT])} ${kind === "mma" ? "MACs" : "B"}`);
      if (bar[COUNT] > 1) more.push(`${bar[COUNT]} warps or pieces`);
      const lines = [`${run.lanes[bar[LANE]].title}: ${what}`, more.join(", ")];
      if (bar[LINE] > 0) lines.push(`line ${bar[LINE]}: ${run.lines[bar[LINE]] || ""}`);
      return lines;
    }

    tell() {
      if (this.chosen < 0) {
        this.about.textContent = "Choose a bar to see what it is, its line of your file, and what it waits for.";
        return;
      }
      const lines = this.said(this.chosen), cause = this.causes.get(this.chosen), effects = this.effects.get(this.chosen);
      if (cause !== undefined) lines.push("ended by " + this.said(cause)[0]);
      if (effects) lines.push("ends " + effects.slice(0, 3).map((wait) => this.said(wait)[0]).join("; ") + (effects.length > 3 ? ", .." : ""));
      this.about.textContent = lines.join("\n");
    }

    hover(event) {
      const i = this.at(event);
      this.tip.hidden = i < 0;
      if (i < 0) return;
      this.tip.textContent = this.said(i).join("\n");
      const box = this.box.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      this.tip.style.left = Math.max(4, Math.min(x + 12, box.width - this.tip.offsetWidth - 8)) + "px";
      const below = y + 16 + this.tip.offsetHeight < box.height;
      this.tip.style.top = Math.max(2, below ? y + 14 : y - this.tip.offsetHeight - 10) + "px";
    }

    at(event) {
      const box = this.box.getBoundingClientRect(), x = event.clientX - box.left - 1, y = event.clientY - box.top - 1;
      if (x < this.left) return -1;
      const time = this.from + (x - this.left) / this.width * (this.to - this.from);
      const near = 3 / this.width * (this.to - this.from);
      const lane = this.tops.findIndex((top, i) => y >= top && y < top + this.run.lanes[i].rows * ROW);
      if (lane < 0) return -1;
      const row = Math.floor((y - this.tops[lane]) / ROW);
      let best = -1, least = near;
      for (const i of this.lanes[lane]) {
        const bar = this.run.bars[i];
        if (bar[SUB] !== row) continue;
        const away = Math.max(bar[BEGIN] - time, time - bar[END], 0);
        const short = best >= 0 && bar[END] - bar[BEGIN] < this.run.bars[best][END] - this.run.bars[best][BEGIN];
        if (away < least || (away === least && (best < 0 || short))) { best = i; least = away; }
      }
      return best;
    }

    // ---- moving ----

    view(from, to) {
      const span = Math.min(this.run.end, Math.max((to - from), this.run.end / 5000, 2e-3));
      this.from = Math.min(Math.max(0, from), this.run.end - span);
      this.to = this.from + span;
      this.tip.hidden = true;
      this.draw();
    }

    zoom(factor, time) {
      const bar = this.chosen >= 0 ? this.run.bars[this.chosen] : null;
      const seen = bar && bar[END] >= this.from && bar[BEGIN] <= this.to;
      const at = time ?? (seen ? (Math.max(bar[BEGIN], this.from) + Math.min(bar[END], this.to)) / 2 : (this.from + this.to) / 2);
      const span = (this.to - this.from) * factor;
      const left = at - (at - this.from) * factor;
      this.view(left, left + span);
    }

    choose(i) {
      this.chosen = i;
      this.tell();
      if (i < 0) return this.draw();
      const bar = this.run.bars[i], span = this.to - this.from;
      if (bar[END] < this.from || bar[BEGIN] > this.to) this.view(bar[BEGIN] - span / 4, bar[BEGIN] + span * 3 / 4);
      else this.draw();
    }

    along(direction) {
      if (this.chosen < 0) return this.choose(this.run.bars.findIndex((bar) => bar[END] >= this.from));
      const lane = this.lanes[this.run.bars[this.chosen][LANE]], next = lane[lane.indexOf(this.chosen) + direction];
      if (next !== undefined) this.choose(next);
    }

    across(direction) {
      if (this.chosen < 0) return this.along(1);
      const bar = this.run.bars[this.chosen], time = Math.max(this.from, Math.min(this.to, (bar[BEGIN] + bar[END]) / 2));
      let lane = bar[LANE] + direction;
      while (this.lanes[lane] && !this.lanes[lane].length) lane += direction;
      if (!this.lanes[lane]) return;
      const away = (i) => Math.max(this.run.bars[i][BEGIN] - time, time - this.run.bars[i][END], 0);
      this.choose(this.lanes[lane].reduce((best, i) => away(i) < away(best) ? i : best));
    }

    act(what) {
      const jump = (i) => { if (i !== undefined) this.choose(i); };
      const actions = {
        in: () => this.zoom(1 / 1.6), out: () => this.zoom(1.6), all: () => this.view(0, this.run.end),
        arrows: () => this.switchArrows(), previous: () => this.along(-1), next: () => this.along(1),
        up: () => this.across(-1), down: () => this.across(1), none: () => this.choose(-1),
        cause: () => jump(this.causes.get(this.chosen)), effect: () => jump((this.effects.get(this.chosen) || [])[0]),
      };
      actions[what]();
    }

    switchArrows() {
      this.arrows = !this.arrows;
      this.buttons.querySelector("[data-do=arrows]").setAttribute("aria-pressed", String(this.arrows));
      this.draw();
    }

    listen() {
      const keys = { ArrowLeft: "previous", ArrowRight: "next", ArrowUp: "up", ArrowDown: "down", Enter: "cause",
        Backspace: "effect", "+": "in", "=": "in", "-": "out", 0: "all", a: "arrows", Escape: "none" };
      this.box.addEventListener("keydown", (event) => {
        const what = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
        if (what === undefined) return;
        event.preventDefault();
        this.act(what);
      });
      this.buttons.addEventListener("click", (event) => {
        const button = event.target.closest("button");
        if (button) this.act(button.dataset.do);
      });
      this.box.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120), this.time(event.clientX));
      }, { passive: false });
      this.pointers();
      let width = 0;
      new ResizeObserver(() => {
        if (this.box.clientWidth && this.box.clientWidth !== width) { width = this.box.clientWidth; this.draw(); }
      }).observe(this.box);
    }

    time(clientX) {
      const box = this.box.getBoundingClientRect();
      return this.from + Math.max(0, clientX - box.left - this.left) / this.width * (this.to - this.from);
    }

    pointers() {
      const down = new Map(); // pointer -> x
      let moved = 0;
      this.box.addEventListener("pointerdown", (event) => {
        if (!down.size) moved = 0;
        down.set(event.pointerId, event.clientX);
        this.tip.hidden = true;
      });
      this.box.addEventListener("pointermove", (event) => {
        if (!down.has(event.pointerId)) return event.pointerType === "mouse" ? this.hover(event) : undefined;
        const before = [...down.values()], dx = event.clientX - down.get(event.pointerId);
        moved += Math.abs(dx);
        if (moved > 4 && !this.box.hasPointerCapture(event.pointerId)) this.box.setPointerCapture(event.pointerId);
        down.set(event.pointerId, event.clientX);
        const now = [...down.values()];
        if (now.length === 2) {
          const factor = Math.max(8, Math.abs(before[0] - before[1])) / Math.max(8, Math.abs(now[0] - now[1]));
          this.zoom(factor, this.time((now[0] + now[1]) / 2));
        } else if (moved > 4) {
          const shift = -dx / this.width * (this.to - this.from);
          this.view(this.from + shift, this.to + shift);
        }
      });
      const up = (event) => {
        const mine = down.delete(event.pointerId);
        if (mine && !down.size && moved <= 4 && event.type === "pointerup") this.choose(this.at(event));
      };
      this.box.addEventListener("pointerup", up);
      this.box.addEventListener("pointercancel", up);
      this.box.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    }
  }

  const runs = JSON.parse(document.getElementById("runs").textContent);
  document.querySelectorAll(".run").forEach((root) => new Chart(root, runs[Number(root.dataset.run)]));
})();
