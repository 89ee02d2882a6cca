import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { run } from 'node:test';
import { spec, type TestEvent } from 'node:test/reporters';

/** One run of node's test runner: the only argument of this program, in JSON. Unlike node's own command, it keeps the files' order. */
export interface Drive {
  /** The files in the order in which they start. */
  readonly files: readonly string[];
  /** Whether the files share one process, in which one runs after the other. */
  readonly together: boolean;
  readonly concurrency: number;
  /** The limit of one file. */
  readonly timeoutMs: number;
  /** The file that receives the counts. */
  readonly countsFile: string;
}

/** Tells the parent each file that has ended, and writes the counts of the run and the duration of each file as one line of JSON. */
async function* countTests(events: AsyncIterable<TestEvent>) {
  const skippedTitles: string[] = [];
  const durations: { readonly file: string; readonly ms: number }[] = [];
  for await (const { type, data } of events) {
    if (together && (type === 'test:pass' || type === 'test:fail') && data.nesting === 0)
      durations.push({ file: data.name, ms: data.details.duration_ms });
    if (type === 'test:pass' && (data.skip !== undefined || data.todo !== undefined)) skippedTitles.push(data.name);
    if (type !== 'test:summary') continue;
    // One summary comes for each file, and then one without a file for all of them.
    if (data.file !== undefined) {
      if (together) continue;
      durations.push({ file: data.file, ms: data.duration_ms });
      process.send?.(data.file);
    } else yield `${JSON.stringify({ ...data.counts, skippedTitles, durations })}\n`;
  }
}

const { files, together, concurrency, timeoutMs, countsFile }: Drive = JSON.parse(process.argv[2] ?? '');
const which = together
  ? { files: [join(import.meta.dirname, 'together.ts')], argv: [...files] }
  : { files: [...files] };
const events = run({ ...which, concurrency, timeout: timeoutMs });
events.compose(spec).pipe(process.stdout);
events.compose(countTests).pipe(createWriteStream(countsFile));
