// For a look at a page: node screenshots.mjs REPORT.html DIR writes every section, light, dark and narrow,
// and a PDF.

import {mkdirSync} from "node:fs";
import {join, resolve} from "node:path";
import {pathToFileURL} from "node:url";
import {startBrowser} from "./helpers.mjs";

const VIEWS = {
  light: {colorScheme: "light", viewport: {width: 1120, height: 900}},
  dark: {colorScheme: "dark", viewport: {width: 1120, height: 900}},
  narrow: {colorScheme: "light", viewport: {width: 390, height: 844}},
};

const [page, directory] = process.argv.slice(2);
mkdirSync(directory, {recursive: true});
const browser = await startBrowser();
for (const [view, options] of Object.entries(VIEWS)) {
  const tab = await (await browser.newContext(options)).newPage();
  await tab.goto(pathToFileURL(resolve(page)).href);
  await tab.waitForSelector(".plot svg");
  await tab.screenshot({path: join(directory, `${view}-top.png`)});
  for (const section of await tab.$$("section[id]")) {
    await section.screenshot({
      path: join(directory, `${view}-${await section.getAttribute("id")}.png`),
    });
  }
  if (view === "light")
    await tab.pdf({path: join(directory, "print.pdf"), format: "A4", printBackground: false});
}
await browser.close();
