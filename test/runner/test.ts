import { availableParallelism, constants } from 'node:os';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { say } from '../../infra/process/report.mjs';
import { locateTemporal } from '../../infra/temporal/executable.ts';
import { prepareComposeTools, prepareDeployTools, probeCompose, probeHelm } from '../helpers/deploy/tools.ts';
import { probeMachines } from '../helpers/fleet/machine.ts';
import { probeKubernetes, startKubernetes } from '../helpers/kubernetes/cluster.ts';
import { optionalDataAvailability } from '../helpers/optional-data.ts';
import { probeStrace } from '../helpers/store/strace.ts';
import { locateVersitygw, probeS3 } from '../helpers/store/versitygw.ts';
import { locateProduction, probePostgres } from '../helpers/temporal/production/locate.ts';
import { probeBubblewrap } from './bubblewrap.ts';
import { runChecks } from './checks.ts';
import { probeDocker, temperContainers } from './docker.ts';
import { killLeftovers, testRunVariable } from './leftovers.ts';
import { type Need, needsOf } from './need.ts';
import { runNodeTests, type TestCounts } from './node-test.ts';
import { ownCommands, type Selection, selectFastTests, selectOwnTests, selectTests, selectTestsOf } from './select.ts';
import { startSharedTemporal } from './shared-temporal.ts';

/**
 * `npm test [-- FILE…]` runs the static checks and then every test that this machine can run; `npm run test:fast` those
 * that need nothing but Node; `npm run test:reference` those that need the reference stack; `npm run test:kubernetes`
 * those that need a cluster; `npm run test:deploy` those of the deployables. The last line is `N passed, N failed`. A
 * suite of which no test can run fails. With CI=true a test that could not run, or a process or container left behind,
 * is a failure, too.
 */
const root = fileURLToPath(new URL('../..', import.meta.url));
const isCi = process.env.CI === 'true';

const words = process.argv.slice(2);
const options = ['--fast', '--reference', '--kubernetes', '--deploy'];
const unknown = words.find((word) => word.startsWith('--') && !options.includes(word));
if (unknown !== undefined)
  throw new Error(`unknown option ${unknown}; name test files, or use one of ${options.join(', ')}`);
const named = words.filter((word) => !word.startsWith('--')).map((file) => relative(root, resolve(file)));
const docker = await probeDocker();
const needs: readonly Need[] = [
  { word: 'docker', name: 'Docker', availability: docker, providedInCi: true },
  {
    word: 'compose',
    name: 'Docker Compose',
    availability: await probeCompose(process.env, isCi || words.includes('--deploy')),
    providedInCi: true,
  },
  { word: 'bubblewrap', name: 'bubblewrap', availability: probeBubblewrap(), providedInCi: true },
  { word: 's3', name: 'an S3 server', availability: await probeS3(process.env), providedInCi: true },
  { word: 'strace', name: 'strace', availability: probeStrace(), providedInCi: true },
  {
    word: 'postgres',
    name: 'a Temporal server on PostgreSQL',
    availability: await probePostgres(process.env),
    providedInCi: true,
  },
  { word: 'machines', name: 'network namespaces', availability: probeMachines(), providedInCi: true },
  { word: 'kubernetes', name: 'a Kubernetes cluster', availability: probeKubernetes(docker), providedInCi: false },
  { word: 'helm', name: 'Helm', availability: await probeHelm(process.env), providedInCi: false },
  { word: 'data', name: 'optional data', availability: optionalDataAvailability(), providedInCi: false },
];
const selection = await select();
const runsChecks = named.length === 0 && selection.files.length > 0;
// What the tests need starts meanwhile, which is mostly waiting.
const checking = runsChecks ? runChecks(root) : Promise.resolve({ passed: 0, failed: [], seconds: 0 });
const needsTemporal = selection.files.some((file) => needsOf(file).includes('temporal'));
if (needsTemporal) await locateTemporal({ env: process.env, progress: say });
if (selection.files.some((file) => needsOf(file).includes('s3')))
  await locateVersitygw({ env: process.env, progress: say });
if (selection.files.some((file) => needsOf(file).includes('postgres')))
  await locateProduction({ env: process.env, progress: say });
if (selection.files.some((file) => needsOf(file).includes('compose')))
  await prepareComposeTools({ env: process.env, progress: say });
if (selection.files.some((file) => needsOf(file).includes('deploy')))
  await prepareDeployTools({ env: process.env, progress: say });

const id = `${process.pid}-${Date.now()}`;
const before = docker.usable ? await temperContainers() : new Map<string, string>();
const onCluster = new Set(selection.files.filter((file) => needsOf(file).includes('kubernetes')));
const kubernetes = onCluster.size > 0 ? await startKubernetes() : null;
const temporal = needsTemporal ? await startSharedTemporal({ ...process.env, [testRunVariable]: id }) : null;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void stop(signal));
const checks = await checking.catch(async (error: unknown) => {
  await closeShared();
  throw error;
});
const counts = await runNodeTests({
  root,
  files: selection.files,
  env: testEnvironment({ ...temporal?.environment, ...(kubernetes && { KUBECONFIG: kubernetes.kubeconfig }) }),
  // Each file keeps about two thirds of a core busy. With more files at once, the same tests take more CPU time.
  concurrency: Math.ceil(1.5 * availableParallelism()),
  onEnd: endCluster,
}).finally(closeShared);
const leftBehind = [...(await killLeftovers(id)).map((line) => `process ${line}`), ...(await newContainers(before))];
report(counts, leftBehind);

/** Ends what the run has started, after a Ctrl-C or another request to stop. */
async function stop(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): Promise<void> {
  await closeShared();
  await killLeftovers(id);
  process.exit(128 + constants.signals[signal]);
}

async function closeShared(): Promise<void> {
  await temporal?.close();
  await kubernetes?.close();
}

/** Ends the cluster after the last file that needs it, since its parts use the processors also at rest. */
function endCluster(ended: string): void {
  // The end of the run waits for the same end, and fails if that did.
  if (onCluster.delete(ended) && onCluster.size === 0) kubernetes?.close().catch(() => {});
}

async function select(): Promise<Selection> {
  if (named.length > 0) return { files: named, leftOut: [] };
  if (words.includes('--reference')) return await selectOwnTests(root, needs, ['reference']);
  if (words.includes('--deploy')) return await selectOwnTests(root, needs, ['deploy', 'compose']);
  if (words.includes('--kubernetes')) return await selectTestsOf(root, needs, 'kubernetes');
  if (words.includes('--fast')) return await selectFastTests(root);
  return await selectTests(root, needs);
}

/** Returns the environment of the tests: no Temporal setting of the user may lead them to another server. */
function testEnvironment(shared: Readonly<Record<string, string>>): Record<string, string | undefined> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(TEMPORAL_|TEMPER_(?!TEST_))/.test(name));
  return { ...Object.fromEntries(kept), ...shared, [testRunVariable]: id };
}

async function newContainers(known: ReadonlyMap<string, string>): Promise<string[]> {
  if (!docker.usable) return [];
  const after = await temperContainers();
  return [...after].filter(([container]) => !known.has(container)).map(([, name]) => `container ${name}`);
}

function report(run: TestCounts | undefined, left: readonly string[]): void {
  const problems = [
    ...checks.failed.map((title) => `${title}: see the first lines, or \`npm run check\``),
    ...(selection.files.length === 0 ? ['no test of this suite can run here'] : []),
    ...(selection.files.length > 0 && run === undefined ? ['the test runner ended without a result'] : []),
    ...(isCi ? [...left.map((what) => `left behind: ${what}`), ...ciProblems(run)] : []),
  ];
  const failed = (run?.failed ?? 0) + problems.length;
  const skipped = run?.skipped ?? [];
  console.log('');
  // Repeated here, since a long run prints them far above.
  for (const { title, place, error } of run?.failures ?? []) console.log(`✖ ${title} (${place})\n${error}`);
  const phases = [{ title: 'checks', seconds: checks.seconds }, ...(run?.phases ?? [])];
  console.log(`phases: ${phases.map(({ title, seconds }) => `${title} ${seconds} s`).join(', ')}`);
  console.log(`slowest files: ${(run?.slowest ?? []).map(({ file, seconds }) => `${file} ${seconds} s`).join(', ')}`);
  for (const title of skipped) console.log(`skipped: ${title}`);
  if (!isCi) for (const what of left) console.log(`left behind: ${what}`);
  for (const { need, reason, files } of selection.leftOut) {
    console.log(`tests that need ${need.name} were left out, because ${reason}:`);
    for (const file of files) console.log(`  ${file}`);
  }
  if (words.length === 0) for (const suite of Object.values(ownCommands)) console.log(`not run: ${suite}`);
  for (const problem of problems) console.log(`✖ ${problem}`);
  const tail = skipped.length > 0 ? `, ${skipped.length} skipped` : '';
  console.log(`${checks.passed + (run?.passed ?? 0)} passed, ${failed} failed${tail}`);
  process.exitCode = failed === 0 ? 0 : 1;
}

/** Returns what CI lacks although it must provide it. */
function ciProblems(run: TestCounts | undefined): string[] {
  return [
    ...needs.flatMap(({ name, availability, providedInCi }) =>
      availability.usable || !providedInCi ? [] : [`CI must provide ${name}: ${availability.reason}`],
    ),
    ...selection.leftOut
      .filter(({ need }) => need.providedInCi)
      .flatMap(({ files }) => files.map((file) => `not run in CI: ${file}`)),
    ...(run?.skipped ?? []).map((title) => `skipped in CI: ${title}`),
  ];
}
