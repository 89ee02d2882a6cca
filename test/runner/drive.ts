import { createWriteStream } from 'node:fs';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { spec, type TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';

/** The number of characters of a failed test's error that the end of the run repeats. */
const errorLength = 1_500;

type FailedTest = Extract<TestEvent, { type: 'test:fail' }>['data'];

/** One run of node's test runner: the only argument of this program, in JSON. Unlike node's own command, it keeps the files' order. */
export interface Drive {
  /** The files in the order in which they start. */
  readonly files: readonly string[];
  /** Whether the files share one process, in which one runs after the other. */
  readonly together: boolean;
  readonly concurrency: number;
  /** The limit of one test. A file, which has several, gets twice the time. */
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
    if (together && (type === 'test:pass' || type === 'test:fail') && data.nesting === 0)
      durations.push({ file: data.name, ms: data.details.duration_ms });
    if (type === 'test:pass' && (data.skip !== undefined || data.todo !== undefined)) skippedTitles.push(data.name);
    if (type === 'test:fail' && !isOfSuite(data))
      failures.push({
        title: data.name,
        place: `${relative(process.cwd(), data.file ?? '')}:${data.line}`,
        error: inspect(data.details.error.cause ?? data.details.error).slice(0, errorLength),
      });
    if (type !== 'test:summary') continue;
    // One summary comes for each file, and then one without a file for all of them.
    if (data.file !== undefined) {
      if (together) continue;
      durations.push({ file: data.file, ms: data.duration_ms });
      process.send?.(data.file);
    } else yield `${JSON.stringify({ ...data.counts, skippedTitles, durations, failures })}\n`;
  }
}

/** Whether a suite failed only because a test in it did. */
const isOfSuite = ({ details }: FailedTest): boolean =>
  'failureType' in details.error && details.error.failureType === 'subtestsFailed';

const { files, together, concurrency, timeoutMs, countsFile }: Drive = JSON.parse(process.argv[2] ?? '');
const which = together
  ? { files: [join(import.meta.dirname, 'together.ts')], argv: [...files] }
  : { files: [...files] };
const endLate = new URL(`./end-late.ts?ms=${2 * timeoutMs}`, import.meta.url);
const events = run({ ...which, concurrency, timeout: timeoutMs, execArgv: [`--import=${endLate}`] });
events.compose(spec).pipe(process.stdout);
events.compose(countTests).pipe(createWriteStream(countsFile));
