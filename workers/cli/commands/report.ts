import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { type JsonOption, stackCommand } from '../stack/command.ts';
import { onStore } from '../stack/on-stack.ts';
import { live, print, printJson } from '../text/output.ts';

interface ReportOptions extends JsonOption {
  readonly out: string;
}

export function reportCommand(): Command {
  return stackCommand(
    'report',
    'Writes the report of a run: one self-contained HTML file.',
    'temper report my-run --out report.html',
  )
    .argument('<run>', 'workflow id of a training run')
    .option('--out <file>', 'file to write', 'report.html')
    .option('--json', 'print the summary as one JSON object instead of the path')
    .action(report);
}

async function report(run: string, options: ReportOptions): Promise<void> {
  const { gatherReport } = await import('./report/gather-report.ts');
  const { renderReport } = await import('../../../infra/report/render-report.ts');
  const { summarise } = await import('../../../infra/report/summary.ts');
  await onStore(options, async (stack) => {
    live(`gathering the records of ${run}`);
    const data = await gatherReport(stack, run, null).finally(() => live(''));
    const path = resolve(options.out);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, renderReport(data));
    if (options.json) printJson(summarise(data));
    else print(path);
  });
}
