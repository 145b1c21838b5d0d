// The small web page of the gateway: sign in, give a task, watch it, take the files.

import { ApiError, events, get, post, send } from "./api.js";
import { Conversation } from "./chat.js";
import { element, find } from "./dom.js";

const MODES = ["messages-tuple", "updates", "custom"];
let thread; // the id of the conversation that is shown
let run; // {id, stop: AbortController} while one is followed
let chosen = []; // files to go with the next task
let isNew = true; // the thread does not exist on the server yet

const conversation = new Conversation(find("#conversation"), (target) =>
  /^https?:/.test(target) ? target : target.startsWith("/mnt/user-data/") ? fileUrl(target) : null);
const fileUrl = (path) => `/api/threads/${thread}/artifacts${path.split("/").map(encodeURIComponent).join("/")}`;
const newId = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("")
  .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, "$1-$2-4$3-8$4-$5");
const size = (bytes) => (bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${(bytes / 1024).toFixed(0)} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`);
const status = (text) => (find("#status").textContent = text);

function notice(error, retry) {
  if (error?.name === "AbortError") return;
  if (error instanceof ApiError && error.status === 401) return signIn("Your session has ended. Sign in again.");
  const again = retry && element("button", { type: "button", onclick: () => (notice(), retry()) }, "Try again");
  find("#notice").replaceChildren(...(error ? [element("span", {}, error.message ?? String(error)), again].filter(Boolean) : []));
  find("#notice").hidden = !error;
  find("#notice").scrollIntoView({ block: "nearest" });
}

const attempt = (action) => async (...given) => {
  notice();
  try {
    await action(...given);
  } catch (error) {
    notice(error, () => attempt(action)(...given));
  }
};

async function begin() {
  try {
    const setup = await get("/api/v1/auth/setup-status");
    if (setup.needs_setup && setup.authentication !== false) {
      return signIn("Welcome! Create the administrator's account.", { code: setup.code_required });
    }
    const me = await get("/api/v1/auth/me");
    find("#account").textContent = me.email ?? "Local user";
    find("#sign-out").hidden = !me.email;
    find("#sign-in").hidden = true;
    find("#workspace").hidden = false;
    await open();
  } catch (error) {
    if (error.status === 401) return signIn("Sign in to go on.");
    find("#workspace").hidden = false;
    notice(error, begin);
  }
}

// `first`: the first account is made, {code: whether the server wants its setup code}.
function signIn(text, first) {
  run?.stop.abort();
  find("#workspace").hidden = true;
  find("#sign-in").hidden = false;
  find("#sign-in-text").textContent = text;
  const form = find("#sign-in-form");
  form.querySelector("button").textContent = first ? "Create account" : "Sign in";
  const askForCode = (wanted) => {
    find("#setup-code").hidden = !wanted;
    form.code.required = wanted;
  };
  askForCode(Boolean(first?.code));
  form.password.autocomplete = first ? "new-password" : "current-password";
  form.onsubmit = async (event) => {
    event.preventDefault();
    const wrong = form.querySelector(".error");
    const [email, password] = [form.email.value, form.password.value];
    form.querySelector("button").disabled = true;
    wrong.hidden = true;
    try {
      const code = form.code.required ? { setup_code: form.code.value } : {};
      if (first) await send("POST", "/api/v1/auth/initialize", { email, password, ...code });
      else await send("POST", "/api/v1/auth/login/local", new URLSearchParams({ username: email, password }));
      form.reset();
      await begin();
    } catch (error) {
      if (error.code === "setup_code_required") askForCode(true);
      wrong.textContent = error.message;
      wrong.hidden = false;
    } finally {
      form.querySelector("button").disabled = false;
    }
  };
}

async function listThreads() {
  const found = await post("/api/threads/search", { limit: 100 });
  find("#threads").replaceChildren(...found.map((one) => {
    const title = one.values?.title || one.metadata?.title || "New task";
    if (one.thread_id === thread) find("#title").textContent = title;
    const remove = element("button", { type: "button", className: "quiet", title: "Delete", ariaLabel: `Delete ${title}` }, "✕");
    remove.onclick = attempt(async () => {
      if (!confirm(`Delete “${title}” with all its files?`)) return;
      await send("DELETE", `/api/threads/${one.thread_id}`);
      if (one.thread_id === thread) location.hash = "#/";
      await listThreads();
    });
    const link = element("a", { href: `#/t/${one.thread_id}`, title, className: one.status === "busy" ? "busy" : "" }, title);
    return element("div", { className: one.thread_id === thread ? "here" : "" }, link, remove);
  }));
}

async function open() {
  run?.stop.abort();
  run = undefined;
  notice();
  find("#sidebar").classList.remove("open");
  const given = location.hash.match(/^#\/t\/([\w-]{1,128})$/)?.[1];
  thread = given ?? newId();
  isNew = !given;
  conversation.reset();
  find("#title").textContent = "New task";
  show([]);
  buttons();
  await attempt(listThreads)();
  if (given) await attempt(load)(given);
  if (matchMedia("(hover: hover)").matches) find("#composer").text.focus();
}

async function load(id) {
  const [state, runs] = await Promise.all([get(`/api/threads/${id}/state`), get(`/api/threads/${id}/runs?limit=1`)]);
  if (id !== thread) return;
  for (const message of state.values?.messages ?? []) conversation.put(message);
  conversation.drawNow();
  find("#scroll").scrollTop = find("#scroll").scrollHeight;
  attempt(listFiles)();
  if (["pending", "running"].includes(runs[0]?.status)) follow(runs[0].run_id);
}

async function listFiles() {
  const id = thread;
  const { artifacts } = await get(`/api/threads/${id}/artifacts`);
  if (id === thread) show(artifacts);
}

function show(files) {
  const box = find("#scroll");
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  find("#files").hidden = !files.length;
  const all = element("a", { href: `/api/threads/${thread}/artifacts.zip` }, "Download all");
  find("#files").replaceChildren(
    element("header", {}, element("h2", {}, "Files"), files.length > 1 ? all : null),
    element("ul", {}, ...files.map((file) => {
      const page = file.mime_type === "text/html";
      const view = page && element("button", { type: "button", onclick: () => preview(file.path) }, "View");
      const name = file.path.replace("/mnt/user-data/outputs/", "");
      return element("li", {}, element("a", { href: file.artifact_url, target: "_blank" }, name), view || null,
        element("span", { className: "muted" }, size(file.size)),
        element("a", { href: `${file.artifact_url}?download=true`, ariaLabel: `Download ${name}` }, "Download"));
    })));
  if (atEnd) box.scrollTop = box.scrollHeight;
}

async function preview(path) {
  const tab = window.open("about:blank"); // at once, or the browser takes it for a pop-up
  try {
    tab.opener = null;
    tab.location = (await post(`/api/threads/${thread}/preview`, { path })).url;
  } catch (error) {
    tab?.close();
    notice(error, () => preview(path));
  }
}

async function upload(id, files) {
  if (!files.length) return [];
  status(`Sending ${files.length} file${files.length > 1 ? "s" : ""} …`);
  const form = new FormData();
  for (const file of files) form.append("files", file);
  return (await (await send("POST", `/api/threads/${id}/uploads`, form)).json()).files;
}

function choose(files) {
  chosen = files;
  find("#chosen").replaceChildren(...files.map((file) => {
    const drop = element("button", { type: "button", ariaLabel: `Remove ${file.name}` }, "✕");
    drop.onclick = () => choose(chosen.filter((other) => other !== file));
    return element("li", {}, `${file.name} (${size(file.size)}) `, drop);
  }));
}

function buttons() {
  const text = find("#composer").text.value.trim();
  find("#send").textContent = run ? "Stop" : "Send";
  find("#send").disabled = run ? run.stopping : !text;
}

async function ask(text, files) {
  const id = thread;
  if (run) return;
  run = { stop: new AbortController(), stopping: true };
  buttons();
  try {
    const sent = await upload(id, files);
    const kwargs = sent.length ? { additional_kwargs: { files: sent.map(({ filename, size, path }) => ({ filename, size: Number(size), path })) } } : {};
    const message = { type: "human", id: newId(), content: text, ...kwargs };
    const body = { input: { messages: [message] }, stream_mode: MODES, if_not_exists: "create", on_disconnect: "continue" };
    status("Starting …");
    const answer = await send("POST", `/api/threads/${id}/runs/stream`, body, { signal: run.stop.signal });
    if (isNew) history.replaceState(null, "", `#/t/${id}`);
    isNew = false;
    find("#composer").text.value = "";
    choose([]);
    conversation.put(message);
    find("#scroll").scrollTop = find("#scroll").scrollHeight;
    await follow(undefined, answer);
  } catch (error) {
    run = undefined;
    status("");
    throw error;
  } finally {
    buttons();
  }
}

// Shows a run until it ends, also over broken connections; `answer` is its stream if there is one already.
async function follow(runId, answer) {
  const mine = (run = { id: runId, stop: new AbortController() });
  const ended = () => run !== mine;
  const followed = thread;
  let last;
  conversation.setRunning(true);
  status("");
  buttons();
  attempt(listThreads)();
  for (let failures = 0; !ended(); ) {
    try {
      const headers = last ? { "Last-Event-ID": last } : {};
      const query = MODES.map((mode) => `stream_mode=${mode}`).join("&");
      answer ??= await send("GET", `/api/threads/${followed}/runs/${mine.id}/stream?${query}`, undefined, { signal: mine.stop.signal, headers });
      mine.id ??= answer.headers.get("Content-Location")?.match(/\/runs\/([\w-]+)/)?.[1];
      for await (const [event, data, id] of events(answer)) {
        if (ended()) return;
        failures = 0;
        last = id || last;
        receive(mine, event, data);
      }
      break; // the stream has come to its end
    } catch (error) {
      if (ended() || error.name === "AbortError") return;
      answer = undefined;
      if (!mine.id || (error instanceof ApiError && error.status > 0) || ++failures > 6) {
        notice(mine.id ? error : new Error("The connection broke off."), () => open());
        break;
      }
      status(`The connection broke off. Trying again (${failures}) …`);
      await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** failures));
    }
  }
  if (ended()) return;
  run = undefined;
  conversation.setRunning(false);
  status("");
  buttons();
  attempt(listFiles)();
  attempt(listThreads)();
}

function receive(mine, event, data) {
  if (event === "metadata") mine.id = data.run_id;
  else if (event === "messages") conversation.piece(data[0]);
  else if (event === "updates") for (const node of Object.values(data)) [node?.messages ?? []].flat().forEach((one) => conversation.put(one));
  else if (event === "custom" && data?.type === "tool_output") conversation.output(data);
  else if (event === "custom" && data?.type === "llm_retry") status(data.message ?? "The model does not answer. Trying again …");
  else if (event === "error") notice(new Error(data?.message ?? "The run failed."));
  if (event === "messages") status("");
}

async function stop() {
  run.stopping = true;
  buttons();
  status("Stopping …");
  try {
    await send("POST", `/api/threads/${thread}/runs/${run.id}/cancel?wait=0&action=interrupt`);
  } catch (error) {
    if (run) run.stopping = false;
    if (![404, 409].includes(error.status)) throw error; // it has ended by itself
  }
}

find("#composer").onsubmit = (event) => {
  event.preventDefault();
  const text = event.target.text.value.trim();
  if (run?.id && !run.stopping) attempt(stop)();
  else if (!run && text) attempt(ask)(text, chosen);
};
find("#composer").text.onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!run) find("#composer").requestSubmit();
};
find("#composer").text.oninput = buttons;
find("#picker").onchange = (event) => {
  choose([...chosen, ...event.target.files]);
  event.target.value = "";
};
find("#menu").onclick = () => find("#sidebar").classList.toggle("open");
find("#scroll").onclick = () => find("#sidebar").classList.remove("open");
find("#new").onclick = () => location.hash === "#/" && open();
find("#sign-out").onclick = attempt(async () => {
  await send("POST", "/api/v1/auth/logout");
  signIn("You have signed out.");
});
addEventListener("hashchange", open);
begin();
