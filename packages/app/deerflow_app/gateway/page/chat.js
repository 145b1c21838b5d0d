// One conversation: what the server's messages and events come to, and how that is shown.

import { element, markdown } from "./dom.js";

const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? "").join("");

export class Conversation {
  constructor(place, fileAddress) {
    this.place = place;
    this.fileAddress = fileAddress;
    this.reset();
  }

  reset() {
    this.messages = new Map(); // by id, in order
    this.open = new Set(); // steps that the reader has opened
    this.running = false;
    this.drawn = [];
    this.place.replaceChildren();
  }

  // A whole message, from the state or from an update. It replaces what was streamed of it.
  put(message) {
    if (!message?.id || message.additional_kwargs?.hide_from_ui) return;
    if (message.type === "tool") return this.result(message);
    if (message.type !== "human" && message.type !== "ai") return;
    const before = this.messages.get(message.id);
    this.messages.set(message.id, {
      ...before,
      type: message.type,
      whole: true,
      text: textOf(message.content),
      thoughts: message.additional_kwargs?.reasoning_content ?? before?.thoughts ?? "",
      files: message.additional_kwargs?.files ?? [],
      calls: (message.tool_calls ?? []).map((call) => ({
        ...before?.calls.find((known) => known.id === call.id), id: call.id, name: call.name, args: call.args,
      })),
    });
    this.draw();
  }

  // A piece of a message.
  piece(chunk) {
    if (chunk.type !== "AIMessageChunk") return this.put(chunk);
    const message = this.messages.get(chunk.id) ?? { type: "ai", text: "", thoughts: "", files: [], calls: [] };
    if (message.whole) return;
    message.text += textOf(chunk.content);
    message.thoughts += chunk.additional_kwargs?.reasoning_content ?? "";
    for (const part of chunk.tool_call_chunks ?? []) {
      let call = message.calls.find((known) => known.index === part.index);
      if (!call) message.calls.push((call = { index: part.index, id: part.id, name: "", text: "" }));
      call.id ??= part.id;
      call.name += part.name ?? "";
      call.text += part.args ?? "";
    }
    this.messages.set(chunk.id, message);
    this.draw();
  }

  result(message) {
    const call = this.call(message.tool_call_id);
    if (!call) return;
    call.result = textOf(message.content);
    call.failed = message.status === "error";
    if (message.name === "ask_clarification") {
      this.messages.set(message.id, { type: "ai", text: call.result, thoughts: "", files: [], calls: [], whole: true });
    }
    this.draw();
  }

  // What a tool prints while it runs.
  output(event) {
    const call = this.call(event.tool_call_id);
    if (call) call.live = ((call.live ?? "") + event.text).slice(-20000);
    this.draw();
  }

  call(id) {
    for (const message of this.messages.values()) {
      const found = message.calls?.find((call) => call.id === id);
      if (found) return found;
    }
  }

  setRunning(running) {
    this.running = running;
    this.draw();
  }

  draw() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = undefined;
      this.drawNow();
    });
  }

  drawNow() {
    const turns = [];
    for (const [id, message] of this.messages) {
      if (message.type === "human" || !turns.length) turns.push([]);
      turns.at(-1).push([id, message]);
    }
    const box = this.place.parentElement;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
    turns.forEach((turn, index) => {
      const last = index === turns.length - 1;
      // Earlier turns do not change any more.
      if (this.drawn[index] && !last && this.drawn[index].done) return;
      const shown = this.turn(turn, last && this.running);
      shown.done = !last;
      if (this.drawn[index]) this.drawn[index].replaceWith(shown);
      else this.place.append(shown);
      this.drawn[index] = shown;
    });
    if (atEnd) box.scrollTop = box.scrollHeight;
  }

  turn(messages, running) {
    const shown = element("article", { className: "turn" });
    let steps;
    for (const [id, message] of messages) {
      if (message.type === "human") {
        const files = message.files.map((file) => file.filename).join(", ");
        shown.append(element("div", { className: "human" }, message.text, files ? element("small", {}, `Attached: ${files}`) : null));
        continue;
      }
      if (message.thoughts) {
        steps ??= this.group(shown, id);
        this.step(steps, `${id}-thoughts`, "Thinking", "", message.thoughts);
      }
      if (message.text.trim()) {
        shown.append(markdown(message.text, this.fileAddress));
        steps = undefined;
      }
      for (const call of message.calls) {
        if (call.name === "ask_clarification") continue;
        steps ??= this.group(shown, id);
        this.step(steps, call.id, call.name, argumentsOf(call), call.result ?? call.live ?? "", call);
      }
    }
    for (const group of shown.querySelectorAll(":scope > .steps")) {
      const summaries = group.querySelectorAll(".steps > summary");
      const count = summaries.length > 1 ? `${summaries.length} steps, at last ` : "";
      group.firstChild.append(count, ...summaries[summaries.length - 1].cloneNode(true).childNodes);
    }
    if (running) shown.append(element("p", { className: "working" }));
    return shown;
  }

  group(place, id) {
    const body = element("div");
    place.append(this.details(`group-${id}`, element("summary"), body));
    return body;
  }

  step(place, id, name, args, body, call) {
    const mark = call ? (call.failed ? "✗ " : call.result === undefined ? "… " : "✓ ") : "";
    const summary = element("summary", { className: call?.failed ? "failed" : "" }, `${mark}${name} `, element("code", {}, args.split("\n")[0].slice(0, 140)));
    const full = [args.length > 140 || args.includes("\n") ? args : "", body].filter(Boolean).join("\n\n");
    place.append(this.details(id, summary, element("pre", {}, full.slice(0, 40000) || "Nothing to show.")));
  }

  details(key, summary, body) {
    const made = element("details", { className: "steps", open: this.open.has(key) }, summary, body);
    made.addEventListener("toggle", (event) => {
      if (event.target === made) this.open[made.open ? "add" : "delete"](key);
    });
    return made;
  }
}

function argumentsOf(call) {
  if (!call.args) return call.text ?? "";
  const values = Object.values(call.args);
  const text = call.args.command ?? call.args.path ?? call.args.query ?? (values.length === 1 ? values[0] : call.args);
  return typeof text === "string" ? text : JSON.stringify(text, null, 1);
}
