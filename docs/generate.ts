import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadAllCommands } from '../workers/cli/program.ts';
import { cliPage } from './generator/cli.ts';
import { fillGlossary } from './generator/glossary.ts';
import { inputsPage } from './generator/inputs.ts';
import { failuresPage, metricsPage, settingsPage } from './generator/pages.ts';
import { retentionPage } from './generator/retention.ts';

/**
 * Writes the reference pages from the code: `node docs/generate.ts`. With `--check` it writes nothing, and exits with 1
 * when a page differs from what the code says.
 */
const note = '<!-- Written by `node docs/generate.ts`; edit the code instead. -->\n\n';

/** Returns every generated page by its path below `docs/`. */
export async function generatePages(): Promise<ReadonlyMap<string, string>> {
  const reference = {
    cli: cliPage(await loadAllCommands()),
    settings: settingsPage(),
    'workflow-inputs': inputsPage(),
    failures: failuresPage(),
    metrics: metricsPage(),
    retention: retentionPage(),
  };
  const pages = new Map(Object.entries(reference).map(([name, text]) => [`reference/${name}.md`, `${note}${text}`]));
  return pages.set('glossary.md', fillGlossary(readFileSync(pathOf('glossary.md'), 'utf8')));
}

/** Returns the pages that differ from what the code says. */
export async function stalePages(): Promise<readonly string[]> {
  const pages = await generatePages();
  return [...pages]
    .filter(([page, text]) => !existsSync(pathOf(page)) || readFileSync(pathOf(page), 'utf8') !== text)
    .map(([page]) => page);
}

const pathOf = (page: string): string => fileURLToPath(new URL(page, import.meta.url));

async function main(words: readonly string[]): Promise<void> {
  if (!words.includes('--check')) {
    for (const [page, text] of await generatePages()) writeFileSync(pathOf(page), text);
    return;
  }
  const stale = await stalePages();
  if (stale.length === 0) return;
  console.error(`docs differ from the code: ${stale.join(', ')}; run \`node docs/generate.ts\``);
  process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
