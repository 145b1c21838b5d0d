import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const EMAIL = "admin@example.com";
export const PASSWORD = "deerflow-2026";
export const ROOT = resolve(import.meta.dirname, "../..");
/** Debian's browser without a window: a quarter less CPU time a test than `chromium --headless`. */
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
export const PYTHON = process.env.PYTHON ?? join(ROOT, ".venv/bin/python");
const GUARD = 90_000;

/** A process of the test: started, killed, started again. */
export class Process {
  private child: ChildProcess | null = null;
  output = "";
  constructor(
    private readonly command: string[],
    private readonly env: Record<string, string> = {},
    private readonly binary = PYTHON,
  ) {}

  /** Resolves with the first address that it prints. */
  async start(): Promise<string> {
    const child = (this.child = spawn(this.binary, this.command, {
      cwd: ROOT,
      // Bytecode is kept, whatever the machine's habit is: compiling it costs each gateway six seconds.
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "", NO_PROXY: "127.0.0.1", ...this.env },
    }));
    return new Promise((ready, failed) => {
      const timer = setTimeout(() => failed(new Error(`It did not start.\n${this.output}`)), GUARD);
      const hear = (data: Buffer) => {
        this.output += data.toString();
        const address = /http:\/\/127\.0\.0\.[12]:\d+[\w/]*/.exec(this.output)?.[0];
        if (address) ready(address);
        if (address) clearTimeout(timer);
      };
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
      child.on("exit", () => failed(new Error(`It ended at once.\n${this.output}`)));
    });
  }

  write = (text: string) => this.child?.stdin?.write(text);

  async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const child = this.child;
    this.child = null;
    if (!child || child.exitCode !== null) return;
    const gone = new Promise((done) => child.once("exit", done));
    child.kill(signal);
    await gone;
    this.output = "";
  }
}

/** The model whose behaviour depends on the first word of a message (tests/support/keyword_agent.py). */
export class Model {
  private readonly process = new Process(["-m", "tests.support.keyword_agent"]);
  url = "";

  async start() {
    this.url = await this.process.start();
    return this;
  }

  stop = () => this.process.end("SIGKILL");
}

/** SearXNG's API and pages of a small web (tests/support/research_web.py), which gateways reach with `--web`. */
export class Web {
  private readonly process = new Process(["-m", "tests.support.research_web"]);
  url = "";

  async start() {
    this.url = await this.process.start();
    return this;
  }

  /** Every page says something else from now on. */
  change = () => this.process.write("change\n");
  stop = () => this.process.end("SIGKILL");
}

/** A gateway with real sandbox and database, serving the built page. */
export class Gateway {
  private readonly home = mkdtempSync(join(tmpdir(), "deerflow-e2e-"));
  private process: Process | null = null;
  url = "";

  constructor(
    private readonly modelUrl: string,
    private readonly options: readonly string[] = [],
    private readonly env: Record<string, string> = {},
  ) {}

  async start() {
    const port = this.url ? new URL(this.url).port : String(await freePort());
    const place = ["--home", this.home, "--model", this.modelUrl, "--port", port];
    this.process = new Process(["-m", "tests.support.workspace_server", ...place, ...this.options], this.env);
    this.url = (await this.process.start()).replace("127.0.0.1", "localhost");
    return this;
  }

  kill = () => this.process?.end("SIGKILL");

  async stop() {
    await this.process?.end("SIGTERM");
    rmSync(this.home, { recursive: true, force: true });
  }
}

export function freePort(): Promise<number> {
  return new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => found(typeof address === "object" && address ? address.port : 0));
    });
  });
}
