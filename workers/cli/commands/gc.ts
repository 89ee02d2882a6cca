import { type Command, InvalidArgumentError } from 'commander';
import type { CategoryReport } from '../../../infra/retention/collect.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { type HomeOption, runningConfigOf, stackCommand } from '../stack/command.ts';
import { bytes, counted, live, note, print, printJson, table } from '../text/output.ts';

interface GcOptions extends HomeOption {
  readonly dryRun?: true;
  readonly olderThan?: number;
  readonly json?: true;
}

/** The longest duration of a pass. */
const limitMs = 24 * 3_600_000;
const unitsMs: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 };

export function gcCommand(): Command {
  return stackCommand(
    'gc',
    'Removes what nothing needs any more, which the stack does every hour anyway: old journals, checkpoints, caches, logs and blobs without a reference. May run beside a stack, and be ended at any time.',
    'temper gc --dry-run',
  )
    .option('--dry-run', 'list what would be removed, and remove nothing')
    .option(
      '--older-than <age>',
      'also remove outcomes, records, diffs, traces and verdicts of what ended longer ago, for example 90d, 12h or 4w',
      ageMs,
    )
    .option('--json', 'print one JSON object to stdout')
    .action(gc);
}

/** Parses an age, such as `90d`, as milliseconds. */
export function ageMs(text: string): number {
  const [, amount, unit = ''] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  if (amount !== undefined && Number(amount) > 0) return Number(amount) * (unitsMs[unit] ?? 0);
  throw new InvalidArgumentError('Expected an age in hours, days or weeks, such as 12h, 90d or 4w.');
}

async function gc(options: GcOptions): Promise<void> {
  const { openStackClient } = await import('../stack/stack-client.ts');
  const { makeRetentionPass } = await import('../../retention.ts');
  const { refuseOtherStack } = await import('../../../infra/temporal/stack-namespace.ts');
  const config = await runningConfigOf(options);
  const dryRun = options.dryRun === true;
  const interrupt = onInterrupt('ending after the file that is being removed');
  const opened: (() => Promise<void>)[] = [];
  const entries: { readonly category: string; readonly name: string; readonly bytes: number; readonly why: string }[] =
    [];
  const notes: string[] = [];
  try {
    const reports = await makeRetentionPass(config, {
      dryRun,
      limitMs,
      olderThanMs: options.olderThan ?? null,
      signal: interrupt.signal,
      async connect() {
        const { client, close, shared } = await openStackClient(config);
        opened.push(close);
        // Nothing is removed on the word of a server that may be another stack's.
        await refuseOtherStack({ objects: shared.objects, client });
        return client;
      },
      note: (text) => notes.push(text),
      onEntry(category, { name, bytes: size, expired }) {
        entries.push({ category, name, bytes: size, why: expired ?? '' });
        live(`${category}: ${counted(entries.length, 'entry', 'entries')}`);
      },
    });
    live('');
    if ('holder' in reports) {
      const { pid } = reports.holder;
      throw new Error(
        `expected to be alone on ${config.home}, got ${pid === null ? 'another process' : `process ${pid}`} that is removing files there; try again in a few minutes`,
      );
    }
    if (options.json) return printJson({ home: config.home, dryRun, categories: reports, entries, notes });
    if (dryRun)
      for (const { category, name, bytes: size, why } of entries)
        print(`${category}: ${name} (${bytes(size)}), ${why}`);
    print(reportText(reports, dryRun));
    for (const text of notes) note(text);
  } finally {
    live('');
    for (const close of opened) await close();
    interrupt.release();
  }
}

/** Formats what a pass did, category by category. */
export function reportText(reports: readonly CategoryReport[], dryRun: boolean): string {
  const rows = reports.map(({ category, removed, bytes: size }) => [category, String(removed), bytes(size)]);
  const total = reports.reduce((sum, { bytes: size }) => sum + size, 0);
  const skipped = reports.flatMap(({ category, skipped: why }) =>
    why === null ? [] : [`skipped ${category}: ${why}`],
  );
  return [
    table(['category', dryRun ? 'would go' : 'removed', dryRun ? 'would free' : 'freed'], rows),
    `\n${dryRun ? 'would free' : 'freed'} ${bytes(total)}`,
    ...skipped,
  ].join('\n');
}
