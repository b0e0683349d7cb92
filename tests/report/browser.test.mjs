// The page as a reader meets it: opened from disk in headless Chromium.

import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import {cpSync, readFileSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import test from "node:test";
import {pathToFileURL} from "node:url";
import {makeRuns} from "./fixtures/make.mjs";
import {PATIENCE, REPORT, startBrowser, temporaryFolder} from "./helpers.mjs";

const SECTIONS = [
  "summary",
  "accuracy",
  "accuracy-late",
  "bits",
  "batch-time",
  "time-to-accuracy",
  "cost-elsewhere",
  "runs",
  "settings",
  "provenance",
];

function makePage(t, changes, edit = () => {}) {
  const runs = temporaryFolder(t);
  const out = temporaryFolder(t);
  edit(makeRuns(runs, changes));
  const {status, stderr} = spawnSync(REPORT, [runs, "--out", out], {encoding: "utf8"});
  assert.equal(status, 0, stderr);
  return pathToFileURL(join(out, "report.html")).href;
}

test("the page in a browser", async (t) => {
  const url = makePage(t, {});
  const browser = await startBrowser();
  t.after(() => browser.close());

  const open = async (options = {}, address = url) => {
    const context = await browser.newContext({viewport: {width: 1120, height: 900}, ...options});
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    const errors = [];
    const requests = [];
    page.on(
      "console",
      (message) => ["error", "warning"].includes(message.type()) && errors.push(message.text()),
    );
    page.on("pageerror", (error) => errors.push(error.stack));
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(address);
    await page.waitForSelector("#cost-elsewhere .plot svg, #runs");
    return {
      page,
      errors,
      requests,
      close: async () => {
        assert.deepEqual(errors, []);
        assert.deepEqual(
          requests.filter((each) => !each.startsWith("file:") && !each.startsWith("blob:")),
          [],
        );
        await context.close();
      },
    };
  };
  // Plot moves its tips in the next animation frame, which a busy machine may draw late.
  const nextFrame = (page) =>
    page.evaluate(
      () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
  const tooltip = async (page, name) => {
    await nextFrame(page);
    return page.$eval(`#${name} .plot`, (plot) =>
      [...plot.querySelectorAll('[aria-label="tip"] tspan')]
        .map((span) => span.textContent.replace(/\u200b/g, ""))
        .join("\n"),
    );
  };
  const hoverMark = async (page, name, selector) => {
    const mark = await page.$(`#${name} .plot ${selector}`);
    await mark.scrollIntoViewIfNeeded();
    const box = await mark.boundingBox();
    await page.mouse.move(box.x + box.width / 2 + 1, box.y + box.height / 2 + 1);
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    return tooltip(page, name);
  };
  const lines = (page, name) =>
    page.$$eval(`#${name} .plot [aria-label="line"] path`, (paths) => paths.length);
  const rows = (page, name) =>
    page.$$eval(`#${name} tbody tr`, (all) =>
      all.map((row) => [...row.cells].map((cell) => cell.textContent)),
    );

  await t.test("every section is there, without errors or requests", async () => {
    const {page, close} = await open();
    assert.deepEqual(
      await page.$$eval("section[id]", (all) => all.map((section) => section.id)),
      SECTIONS,
    );
    assert.equal(await page.$$eval(".plot > svg", (all) => all.length), 6);
    const marks = await page.$$eval(".marks li", (all) => all.map((item) => item.className));
    assert.deepEqual(marks.sort(), ["diverged", "oversubscribed", "reduced", "unfinished"]);
    assert.equal((await rows(page, "runs")).length, 18);
    await close();
  });

  await t.test("hovering shows values in every figure", async () => {
    const {page, close} = await open();
    for (const name of ["accuracy", "accuracy-late", "bits"]) {
      assert.match(
        await hoverMark(page, name, '[aria-label="dot"] path'),
        /(PyTorch DDP|Paper), .*\n.*epoch \d+\naccuracy \d+\.\d\d%\nsent /,
        name,
      );
    }
    assert.match(
      await hoverMark(page, "batch-time", '[aria-label="bar"] [fill*="backward"] rect'),
      /backward .* ms \(\d+\.\d% of batch\)/,
    );
    assert.match(await hoverMark(page, "time-to-accuracy", '[aria-label="dot"] path'), /% after /);
    assert.match(
      await hoverMark(page, "cost-elsewhere", '[aria-label="dot"] path'),
      /collectives \(modelled\) .* ms/,
    );
    await close();
  });

  await t.test("the legend hides and shows a scheme, by click and by keyboard", async () => {
    const {page, close} = await open();
    const before = await lines(page, "accuracy");
    const button = '#accuracy [data-label="rank 2"]';
    await page.click(button);
    assert.equal(await page.getAttribute(button, "aria-pressed"), "false");
    const without = await lines(page, "accuracy");
    assert.equal(before - without, 6, "two means and four seeds are gone");
    assert.equal(
      await page.getAttribute('#bits [data-label="rank 2"]', "aria-pressed"),
      "false",
      "in all figures",
    );
    assert.equal(
      await page.evaluate(() => document.activeElement.dataset.label),
      "rank 2",
      "focus stays",
    );
    await page.keyboard.press("Space");
    assert.equal(await page.getAttribute(button, "aria-pressed"), "true");
    assert.equal(await lines(page, "accuracy"), before);
    for (const label of ["full precision", "FP16", "rank 1", "rank 2", "rank 4"])
      await page.click(`#accuracy [data-label="${label}"]`);
    assert.equal(await lines(page, "accuracy"), 0, "all can be hidden");
    await close();
  });

  await t.test("arrow keys read values without a mouse", async () => {
    const {page, close} = await open();
    await page.focus("#accuracy .plot");
    await page.keyboard.press("ArrowRight");
    const first = await tooltip(page, "accuracy");
    assert.match(first, /accuracy \d/);
    for (let i = 0; i < 4; i += 1) await page.keyboard.press("ArrowRight");
    const later = await tooltip(page, "accuracy");
    assert.match(later, /accuracy \d/);
    assert.notEqual(later, first);
    await page.keyboard.press("Escape");
    assert.equal(await tooltip(page, "accuracy"), "");
    await close();
  });

  await t.test("bits switch to a logarithmic axis; weights to the running average", async () => {
    const {page, close} = await open();
    const text = (name) => page.$eval(`#${name} .plot svg`, (svg) => svg.textContent);
    assert.doesNotMatch(await text("bits"), /logarithmic/);
    await page.check('#bits input[value="log"]');
    assert.match(await text("bits"), /logarithmic/);
    const path = () =>
      page.$$eval('#accuracy [aria-label="line"] path', (all) =>
        all.map((each) => each.getAttribute("d")).join(),
      );
    const last = await path();
    await page.check('#accuracy input[value="runavg"]');
    assert.notEqual(await path(), last);
    await close();
  });

  await t.test("thresholds can be chosen", async () => {
    const {page, close} = await open();
    await page.fill("#thresholds", "70, 99.5");
    const heads = await page.$$eval("#time-to-accuracy thead th", (all) =>
      all.map((cell) => cell.textContent),
    );
    assert.deepEqual(heads.slice(2), ["To 70%", "To 99.5%"]);
    assert.ok(
      (await rows(page, "time-to-accuracy")).every(
        (cells) => cells[3] === "not reached" && /^[\d.]+ (ms|s|min)/.test(cells[2]),
      ),
    );
    await page.fill("#thresholds", "?");
    assert.equal(await page.getAttribute("#thresholds", "aria-invalid"), "true");
    await close();
  });

  await t.test("sliders change what is modelled and nothing that was measured", async () => {
    const {page, close} = await open();
    const before = await rows(page, "cost-elsewhere");
    const measured = await rows(page, "summary");
    await page.focus("#bandwidth");
    for (let i = 0; i < 30; i += 1) await page.keyboard.press("ArrowLeft");
    assert.match(await page.textContent("#cost-elsewhere output[for=bandwidth]"), /^5.\d Gbit\/s$/);
    const slower = await rows(page, "cost-elsewhere");
    before.forEach((cells, i) => {
      assert.deepEqual(slower[i].slice(0, 4), cells.slice(0, 4), "measured columns stay");
      assert.ok(
        parseFloat(slower[i][4].replace(",", "")) > parseFloat(cells[4]),
        "modelled collectives grow",
      );
    });
    await page.focus("#latency");
    await page.keyboard.press("End");
    assert.match(await page.textContent("#cost-elsewhere output[for=latency]"), /^500 µs$/);
    await page.fill("#workers", "64");
    assert.match(
      await page.textContent("#cost-elsewhere .title"),
      /64 workers at 5.\d+ Gbit\/s and 500 µs/,
    );
    const exposed = await rows(page, "cost-elsewhere");
    await page.check('#cost-elsewhere input[value="full"]');
    const hidden = await rows(page, "cost-elsewhere");
    exposed.forEach((cells, i) => assert.equal(hidden[i][5] === cells[5], cells[0] === "Paper"));
    assert.deepEqual(await rows(page, "summary"), measured);
    await close();
  });

  await t.test("dark, narrow and printed", async () => {
    const dark = await open({colorScheme: "dark"});
    assert.equal(
      await dark.page.$eval("html", (html) => getComputedStyle(html).backgroundColor),
      "rgb(20, 24, 28)",
    );
    await dark.close();
    const narrow = await open({viewport: {width: 390, height: 844}});
    assert.equal(await narrow.page.evaluate(() => document.documentElement.scrollWidth), 390);
    await narrow.close();
    const {page, close} = await open({colorScheme: "dark"});
    await page.emulateMedia({media: "print"});
    assert.equal(
      await page.$eval("html", (html) => getComputedStyle(html).backgroundColor),
      "rgb(255, 255, 255)",
    );
    assert.equal(await page.isVisible("nav"), false);
    assert.ok((await page.pdf({format: "A4"})).length > 20000);
    await close();
  });

  await t.test("a figure can be saved as SVG", async () => {
    const {page, close} = await open();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.click("#accuracy .save"),
    ]);
    assert.equal(download.suggestedFilename(), "accuracy.svg");
    assert.match(readFileSync(await download.path(), "utf8"), /Test accuracy against epoch/);
    await close();
  });

  await t.test("hostile names are shown, not run", async (t2) => {
    const name = "</script><img src=x onerror=alert(1)>";
    const address = makePage(t2, {seeds: 1, odd: false}, (made) => {
      const [{folder, run}] = made;
      writeFileSync(join(folder, "run.json"), JSON.stringify({...run, name, label: "<b>bold</b>"}));
    });
    const {page, close} = await open({}, address);
    assert.ok(
      (await rows(page, "runs")).some(([id, , label]) => id === name && label === "<b>bold</b>"),
    );
    assert.equal(await page.$$eval("img, #report b", (all) => all.length), 0);
    await close();
  });

  await t.test("runs of two setups: one is chosen at a time", async (t2) => {
    const address = makePage(t2, {seeds: 1, odd: false}, (made) => {
      const [{folder, run}] = made;
      cpSync(folder, `${folder}-small`, {recursive: true});
      writeFileSync(
        join(`${folder}-small`, "run.json"),
        JSON.stringify({...run, name: "small", config: {...run.config, base_width: 16}}),
      );
    });
    const {page, close} = await open({}, address);
    assert.equal((await rows(page, "runs")).length, 9);
    await page.selectOption("#setup", "1");
    assert.deepEqual(
      (await rows(page, "runs")).map(([id]) => id),
      ["small"],
    );
    await close();
  });
});
