import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test as base, expect } from "@playwright/test";
import { Chat } from "./chat";
import { signIn } from "./fixtures";
import { freePort, Gateway, Model, Process } from "./server";

const FRONTEND = resolve(import.meta.dirname, "..");
const TEMPLATE = resolve(FRONTEND, "../docker/nginx/nginx.conf.template");
const NGINX = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"].find((path) => existsSync(path));

/** Next.js, gateway and nginx as docs/operations.md starts them; yields their common address. */
const test = base.extend<object, { site: string }>({
  site: [
    async ({}, use) => {
      const model = await new Model().start();
      const gateway = await new Gateway(model.url, ["--no-ui"], {
        AUTH_TRUSTED_PROXIES: "127.0.0.1",
      }).start();
      const [pagePort, port] = [await freePort(), await freePort()];
      const page = new Process(
        [join(FRONTEND, "build/standalone/server.js")],
        { PORT: String(pagePort), HOSTNAME: "127.0.0.1" },
        process.execPath,
      );
      await page.start();
      const root = mkdtempSync(join(tmpdir(), "deerflow-nginx-"));
      const facts: Record<string, string> = {
        LISTEN: `127.0.0.1:${port}`,
        PAGE_ADDRESS: `127.0.0.1:${pagePort}`,
        GATEWAY_ADDRESS: new URL(gateway.url).host.replace("localhost", "127.0.0.1"),
      };
      const config = readFileSync(TEMPLATE, "utf8").replace(
        /\$([A-Z_]+)/g,
        (all, name) => facts[name] ?? all,
      );
      writeFileSync(
        join(root, "nginx.conf"),
        `daemon off; pid ${root}/pid; error_log ${root}/log;\n${config}`,
      );
      const nginx = new Process(["-p", root, "-c", join(root, "nginx.conf")], {}, NGINX);
      const site = `http://localhost:${port}`;
      void nginx.start().catch(() => undefined); // prints nothing
      await expect(async () => expect((await fetch(`${site}/health`)).status).toBe(200)).toPass();
      await use(site);
      await nginx.end("SIGTERM");
      await page.end("SIGTERM");
      await gateway.stop();
      await model.stop();
      rmSync(root, { recursive: true, force: true });
    },
    { scope: "worker", timeout: 120_000 },
  ],
});

test.beforeAll(() => expect(NGINX, "nginx is not installed").toBeDefined());

test("the page of a Node.js server works behind nginx, streams included", async ({ page, site }) => {
  const refused: string[] = [];
  page.on("console", (said) => said.type() === "error" && refused.push(said.text()));
  await page.goto(site);
  await expect(page.getByLabel("Email")).toBeVisible();
  await signIn(page.context(), site);
  await page.goto(`${site}/chats`);
  const chat = new Chat(page);
  await chat.say("slow 400");
  await chat.sees(/step 3 of 400/);
  await chat.sees(/step 6 of 400/); // comes while the command runs: nothing holds the stream back
  await chat.stop.click();
  await chat.done();
  const address = page.url();
  await page.goto(address); // a deep link
  await chat.sees(/slow 400/);
  expect((await page.goto(`${site}/nowhere`))?.status()).toBe(404);
  expect(refused.filter((text) => /Content Security Policy/.test(text))).toEqual([]);
});
