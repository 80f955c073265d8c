// SPDX-License-Identifier: MIT
// Opens pages in headless Chromium, and prints an object a line with what happened in each. RTEV_AXE is the folder that
// scripts/lib/unpack-axe made. With RTEV_SCREENSHOTS=FOLDER it also takes pictures.
//
// usage: check-pages.mjs PAGE...
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";

const axe = readFileSync(`${process.env.RTEV_AXE}/axe.min.js`, "utf8");
const profile = mkdtempSync(join(tmpdir(), "rtev-browser-"));
// The Chrome DevTools Protocol over pipes: messages end with a zero byte.
const browser = spawn(process.env.CHROMIUM || "chromium", ["--headless=new", "--no-sandbox", "--disable-gpu",
  "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--no-first-run",
  "--host-resolver-rules=MAP * ~NOTFOUND", `--user-data-dir=${profile}`, "--remote-debugging-pipe"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const waiting = new Map();
let last_id = 0, rest = "", on_event = () => {};
browser.stdio[4].setEncoding("utf8").on("data", text => {
  const messages = (rest + text).split("\0");
  rest = messages.pop();
  for (const message of messages.map(message => JSON.parse(message))) {
    if (message.id === undefined) on_event(message);
    else if (message.error) waiting.get(message.id).reject(new Error(message.error.message));
    else waiting.get(message.id).resolve(message.result);
    waiting.delete(message.id);
  }
});
browser.on("exit", () => { for (const one of waiting.values()) one.reject(new Error("the browser has ended")); });
const send = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
  waiting.set(++last_id, { resolve, reject });
  browser.stdio[3].write(JSON.stringify({ id: last_id, method, params, sessionId }) + "\0");
});

async function check(path) {
  const url = pathToFileURL(path).href, seen = { page: path, errors: [], requests: [], dialogs: [] };
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const page = (method, params) => send(method, params, sessionId);
  on_event = ({ method, params }) => {
    if (method === "Runtime.exceptionThrown") seen.errors.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
    if (method === "Runtime.consoleAPICalled" && /error|warn|assert/.test(params.type)) seen.errors.push(JSON.stringify(params.args));
    if (method === "Log.entryAdded" && params.entry.level !== "verbose" && params.entry.level !== "info") seen.errors.push(params.entry.text);
    if (method === "Network.requestWillBeSent" && params.request.url !== url) seen.requests.push(params.request.url);
    if (method === "Page.javascriptDialogOpening") {
      seen.dialogs.push(params.message);
      page("Page.handleJavaScriptDialog", { accept: true });
    }
  };
  const evaluate = async expression => {
    const { result, exceptionDetails } = await page("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  };
  const press = async (key, code, text) => {
    for (const type of ["keyDown", "keyUp"])
      await page("Input.dispatchKeyEvent", { type, key, code: key, windowsVirtualKeyCode: code, text: type === "keyDown" ? text : undefined });
  };
  const look = (width, height, scheme) => Promise.all([
    page("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false }),
    page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] })]);
  const settle = () => evaluate("new Promise(done => setTimeout(done, 250))");
  const picture = async name => {
    if (!process.env.RTEV_SCREENSHOTS) return;
    const { data } = await page("Page.captureScreenshot", { captureBeyondViewport: name.endsWith("-full") });
    writeFileSync(join(process.env.RTEV_SCREENSHOTS, `${basename(path, ".html")}-${name}.png`), data, "base64");
  };
  const violations = rules => evaluate(`axe.run(document, { resultTypes: ["violations"]${rules} }).then(found => found.violations.map(
    of => of.id + ": " + of.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(" | ")))`);

  await Promise.all(["Page", "Runtime", "Log", "Network"].map(domain => page(`${domain}.enable`)));
  await look(1280, 900, "light");
  await page("Emulation.setScriptExecutionDisabled", { value: true });
  await page("Page.navigate", { url });
  while (await evaluate("document.URL + document.readyState") !== `${url}complete`) await new Promise(done => setTimeout(done, 20));
  seen.text_without_scripts = await evaluate("document.body.innerText");
  await picture("without-scripts");
  await page("Emulation.setScriptExecutionDisabled", { value: false });
  await page("Page.navigate", { url });
  seen.ready_ms = Math.round(await evaluate(`new Promise((done, fail) => {
    const begin = performance.now();
    const look = () => document.documentElement?.dataset.ready ? done(performance.now())
      : performance.now() - begin > 30000 ? fail(new Error("the page is not ready: " + document.body?.textContent.slice(0, 300))) : setTimeout(look, 5);
    look();
  })`));
  seen.bytes = readFileSync(path).length;
  await picture("light");
  await picture("light-full");
  await look(1280, 900, "dark");
  await settle();
  await picture("dark");
  await picture("dark-full");
  await look(400, 800, "light");
  await settle();
  seen.narrow_width = await evaluate("document.documentElement.scrollWidth");
  await picture("narrow");
  await picture("narrow-full");

  // The keyboard: where Tab leads, and whether Enter opens what is closed.
  await look(1280, 900, "light");
  await evaluate("document.body.tabIndex = -1, document.body.focus()");
  const stops = new Set();
  for (let i = 0; i < 60; ++i) {
    await press("Tab", 9);
    stops.add(await evaluate("(document.activeElement.closest('section') || document.activeElement).getAttribute('aria-labelledby') || document.activeElement.tagName"));
  }
  seen.tab_stops = [...stops];
  seen.opens_by_key = await evaluate("(() => { const closed = [...document.querySelectorAll('details:not([open]) > summary')][0]; if (!closed) return null; closed.focus(); closed.dataset.mine = 'yes'; return true; })()");
  if (seen.opens_by_key) {
    await press("Enter", 13, "\r");
    seen.opens_by_key = await evaluate("document.querySelector('[data-mine]').parentNode.open");
  }

  // All that is closed at first, too.
  await evaluate("(async () => { for (let round = 0; round < 3; ++round) { for (const one of document.querySelectorAll('details:not(.pause:nth-of-type(n+3), .pause:nth-of-type(n+3) *)')) one.open = true; await new Promise(done => setTimeout(done, 120)); } })()");
  await picture("open-full");
  seen.text = await evaluate("document.body.innerText");
  // Rows and marks of a chart are all alike: some are enough.
  await evaluate("document.querySelectorAll('tbody tr:nth-child(n+4), svg > :nth-child(n+40)').forEach(one => one.remove())");
  await evaluate(axe);
  seen.violations = await violations("");
  await look(1280, 900, "dark");
  await settle();
  seen.violations.push(...(await violations(", runOnly: [\"color-contrast\"]")).map(text => `dark: ${text}`));
  seen.owned = await evaluate("window.owned === undefined ? null : String(window.owned)");
  await send("Target.closeTarget", { targetId });
  return seen;
}

let failed = false;
try {
  for (const path of process.argv.slice(2)) console.log(JSON.stringify(await check(path)));
} catch (error) {
  console.error(String(error.stack || error));
  failed = true;
}
browser.removeAllListeners("exit");
await send("Browser.close").catch(() => {});
await new Promise(done => { if (browser.exitCode !== null) done(); else { browser.on("exit", done); setTimeout(() => { browser.kill("SIGKILL"); done(); }, 3000); } });
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
process.exit(failed ? 1 : 0);
