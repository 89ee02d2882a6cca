import { createWriteStream, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { run } from 'node:test';
import { spec, type TestEvent } from 'node:test/reporters';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { needsOf } from './need.ts';

/** The number of characters of a failed test's error that the end of the run repeats. */
const errorLength = 1_500;

type FailedTest = Extract<TestEvent, { type: 'test:fail' }>['data'];

/** One run of node's test runner: the only argument of this program, in JSON. Unlike node's own command, it keeps the files' order. */
export interface Drive {
  /** The processes in the order in which they start. The files of one run one after the other. */
  readonly processes: readonly (readonly string[])[];
  /** The number of processes that run at the same time. */
  readonly concurrency: number;
  /** The limit of one test. A process, which has several, gets twice the time. */
  readonly timeoutMs: number;
  /** The file that receives the counts. */
  readonly countsFile: string;
}

/** Tells the parent each file that has ended, and writes the counts of the run and the duration of each file as one line of JSON. */
async function* countTests(events: AsyncIterable<TestEvent>) {
  const skippedTitles: string[] = [];
  const failures: { readonly title: string; readonly place: string; readonly error: string }[] = [];
  const durations: { readonly file: string; readonly ms: number }[] = [];
  for await (const { type, data } of events) {
    if ((type === 'test:pass' || type === 'test:fail') && data.nesting === 0 && data.file === together)
      durations.push({ file: data.name, ms: data.details.duration_ms });
    if (type === 'test:pass' && (data.skip !== undefined || data.todo !== undefined)) skippedTitles.push(data.name);
    if (type === 'test:fail' && !isOfSuite(data))
      failures.push({
        title: data.name,
        place: `${relative(process.cwd(), data.file ?? '')}:${data.line}`,
        error: inspect(data.details.error.cause ?? data.details.error).slice(0, errorLength),
      });
    if (type !== 'test:summary') continue;
    // One summary comes for each process, and then one without a file for all of them.
    if (data.file === undefined) {
      yield `${JSON.stringify({ ...data.counts, skippedTitles, durations, failures })}\n`;
    } else if (!shared.has(data.file)) {
      durations.push({ file: data.file, ms: data.duration_ms });
      process.send?.(data.file);
    }
  }
}

/** Whether a suite failed only because a test in it did. */
const isOfSuite = ({ details }: FailedTest): boolean =>
  'failureType' in details.error && details.error.failureType === 'subtestsFailed';

const { processes, concurrency, timeoutMs, countsFile }: Drive = JSON.parse(process.argv[2] ?? '');
const together = join(import.meta.dirname, 'together.ts');
/** The modules that each run several files. */
const shared = new Set<string>();

/**
 * Writes a module that runs the files, since node's test runner gives all processes the same arguments. Returns its path, which
 * ends like the name of a file that needs what they need.
 */
function writeShared(files: readonly string[]): string {
  const needs = new Set(files.flatMap(needsOf));
  const module = join(dirname(countsFile), [`shared-${shared.size}`, ...needs, 'test', 'mjs'].join('.'));
  const runs = `import { runTogether } from ${JSON.stringify(pathToFileURL(together).href)};\n`;
  writeFileSync(module, `${runs}runTogether(${JSON.stringify(files)});\n`);
  shared.add(module);
  return module;
}

const files = processes.map((one) => (one.length === 1 ? (one[0] ?? '') : writeShared(one)));
const preloaded = [`./end-late.ts?ms=${2 * timeoutMs}`, './hide-docker.ts'];
const imports = preloaded.map((module) => `--import=${new URL(module, import.meta.url)}`);
// Most processes end before they use this much memory, so they need not look for garbage among old objects.
const heap = '--initial-old-space-size=256';
const events = run({ files, concurrency, timeout: timeoutMs, execArgv: [heap, ...imports] });
events.compose(spec).pipe(process.stdout);
events.compose(countTests).pipe(createWriteStream(countsFile));
