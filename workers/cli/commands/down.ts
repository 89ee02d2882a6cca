import type { Command } from 'commander';
import { onInterrupt } from '../follow/interrupt.ts';
import { configOf, type JsonOption, stackCommand } from '../stack/command.ts';
import { Unsuccessful } from '../text/errors.ts';
import { live, note, print, printJson } from '../text/output.ts';

export function downCommand(): Command {
  return stackCommand(
    'down',
    'Stops the stack of a home, whichever command started it, and waits until its processes have ended: first the workers, then the servers. Kills what has not ended after a minute. Agents keep running, and the next stack continues with them. The exit code is 1 if no stack runs.',
    'temper down',
  )
    .option('--json', 'print one JSON object to stdout')
    .action(down);
}

async function down(options: JsonOption): Promise<void> {
  const { stopStack } = await import('../../up/stop-stack.ts');
  const config = configOf(options);
  const interrupt = onInterrupt('no longer waiting; the stack continues to stop');
  const stopped = await stopStack(
    { config, progress: note, onChange: (running) => live(`stopping ${running.join(', ')}`) },
    interrupt.signal,
  ).finally(() => live(''));
  interrupt.release();
  if (options.json) printJson({ home: config.home, stopped });
  if (stopped.length === 0) throw new Unsuccessful(`no stack runs on ${config.home}`);
  if (options.json) return;
  for (const { name, pid, killed } of stopped) print(`${killed ? 'killed ' : 'stopped'} ${name} (${pid})`);
}
