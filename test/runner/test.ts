import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { say } from '../../infra/process/report.mjs';
import { locateTemporal } from '../../infra/temporal/executable.ts';
import { probeBubblewrap } from './bubblewrap.ts';
import { runChecks } from './checks.ts';
import { probeDocker, temperContainers } from './docker.ts';
import type { Facility } from './facility.ts';
import { killLeftovers, TEST_RUN_VARIABLE } from './leftovers.ts';
import { runNodeTests, type TestCounts } from './node-test.ts';
import { referenceTests, type Selection, selectTests } from './select.ts';

/**
 * `npm test [-- FILE…]`: static checks, then every test that this machine can run; `npm run test:reference`: those that
 * need the reference stack. The last line is `N passed, N failed`; with CI=true anything that could not run, or was left
 * behind, is a failure too.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const isCi = process.env.CI === 'true';

const words = process.argv.slice(2);
const named = words.filter((word) => word !== '--reference').map((file) => relative(ROOT, resolve(file)));
const docker = await probeDocker();
const facilities: readonly Facility[] = [
  { name: 'Docker', suffix: '.docker.test.ts', availability: docker },
  { name: 'bubblewrap', suffix: '.bubblewrap.test.ts', availability: probeBubblewrap() },
];
const selection = await select();
const checks = words.length > 0 ? { passed: 0, failed: [] } : await runChecks(ROOT);
await locateTemporal({ env: process.env, progress: say });

const id = `${process.pid}-${Date.now()}`;
const before = docker.usable ? await temperContainers() : new Map<string, string>();
const counts = await runNodeTests(ROOT, selection.files, testEnvironment(id));
const leftBehind = [...(await killLeftovers(id)).map((line) => `process ${line}`), ...(await newContainers(before))];
report(counts, leftBehind);

async function select(): Promise<Selection> {
  if (named.length > 0) return { files: named, leftOut: [] };
  if (words.includes('--reference')) return { files: await referenceTests(ROOT), leftOut: [] };
  return await selectTests(ROOT, facilities);
}

/** Tests use servers of their own: nothing of the user's Temporal settings may lead them to another. */
function testEnvironment(run: string): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(TEMPORAL_|TEMPER_(?!TEST_))/.test(name));
  return { ...Object.fromEntries(kept), [TEST_RUN_VARIABLE]: run };
}

async function newContainers(known: ReadonlyMap<string, string>): Promise<string[]> {
  if (!docker.usable) return [];
  const after = await temperContainers();
  return [...after].filter(([container]) => !known.has(container)).map(([, name]) => `container ${name}`);
}

function report(run: TestCounts | undefined, left: readonly string[]): void {
  const problems = [
    ...checks.failed.map((title) => `${title}: see the first lines, or \`npm run check\``),
    ...(run === undefined ? ['the test runner ended without a result'] : []),
    ...(isCi ? [...left.map((what) => `left behind: ${what}`), ...ciProblems(run)] : []),
  ];
  const failed = (run?.failed ?? 0) + problems.length;
  const skipped = run?.skipped ?? [];
  console.log('');
  for (const title of skipped) console.log(`skipped: ${title}`);
  if (!isCi) for (const what of left) console.log(`left behind: ${what}`);
  for (const { needed, reason, files } of selection.leftOut) {
    console.log(`${needed} tests were not run, because ${reason}:`);
    for (const file of files) console.log(`  ${file}`);
  }
  for (const problem of problems) console.log(`✖ ${problem}`);
  const tail = skipped.length > 0 ? `, ${skipped.length} skipped` : '';
  console.log(`${checks.passed + (run?.passed ?? 0)} passed, ${failed} failed${tail}`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** CI provides everything: what can't run there is an error of CI, not a reason. */
function ciProblems(run: TestCounts | undefined): string[] {
  return [
    ...facilities.flatMap(({ name, availability }) =>
      availability.usable ? [] : [`CI must provide ${name}: ${availability.reason}`],
    ),
    ...selection.leftOut.flatMap(({ files }) => files.map((file) => `not run in CI: ${file}`)),
    ...(run?.skipped ?? []).map((title) => `skipped in CI: ${title}`),
  ];
}
