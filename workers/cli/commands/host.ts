import { userInfo } from 'node:os';
import { Command } from 'commander';
import { renewMsOf } from '../../../infra/hosts/lease-times.ts';
import { openSharedState, type SharedState } from '../../../infra/store/shared-state.ts';
import { type HomeOption, type JsonOption, runningConfigOf, stackCommand } from '../stack/command.ts';
import { hostNotes, hostRows, hostTable, livingHost } from '../stack/hosts.ts';
import { note, print, printJson } from '../text/output.ts';
import type { ForgetOptions } from './host/forget.ts';

const nameHelp = 'name of the host (TEMPER_HOST)';

export function hostCommand(): Command {
  const list = stackCommand(
    'list',
    'Lists the hosts of a stack: state, slots, kinds of sandboxes, version and last sign of life.',
    'temper host list',
  )
    .alias('ls')
    .option('--json', 'print one JSON array to stdout')
    .action(listHosts);
  const drain = stackCommand(
    'drain',
    'Makes a host take no new rollouts, images and evaluations. It finishes its own rollouts, and stays drained over restarts.',
    'temper host drain gpu-1 --reason "new disks"',
  )
    .argument('<name>', nameHelp)
    .option('--reason <text>', 'shown by temper status')
    .option('--json', 'print the record of the host to stdout')
    .action(drainNamed);
  const resume = stackCommand('resume', 'Makes a drained host take new work again.', 'temper host resume gpu-1')
    .argument('<name>', nameHelp)
    .option('--json', 'print the record of the host to stdout')
    .action(resumeNamed);
  const forget = stackCommand(
    'forget',
    'Declares a host lost, for ever: other hosts adopt its rollouts or begin them again, and if it was only cut off and comes back, it removes what it holds and starts afresh. Refuses a host that is alive.',
    'temper host forget gpu-1',
  )
    .argument('<name>', nameHelp)
    .option('--reason <text>', 'shown by temper status')
    .option('--yes', 'do not ask for confirmation')
    .option('--force', 'do not look whether the host is alive')
    .option('--json', 'print the record of the host to stdout')
    .action(async (name: string, options: ForgetOptions) =>
      (await import('./host/forget.ts')).forgetHost(name, options),
    );
  return new Command('host')
    .description('Lists the hosts of a stack, and takes them out of service.')
    .addCommand(list)
    .addCommand(drain)
    .addCommand(resume)
    .addCommand(forget);
}

async function listHosts(options: JsonOption): Promise<void> {
  const rows = await hostRows(await stateOf(options));
  if (options.json) return printJson(rows);
  if (rows.length === 0) return note('no hosts yet');
  print(`${hostTable(rows)}\n${hostNotes(rows)}`.trimEnd());
}

async function drainNamed(name: string, options: JsonOption & { readonly reason?: string }): Promise<void> {
  const { drainHost } = await import('../../../infra/hosts/orders.ts');
  const { hosts } = await stateOf(options);
  const record = livingHost(name, await drainHost(hosts, name, options.reason ?? `by ${userInfo().username}`));
  if (options.json) return printJson({ name, ...record });
  print(
    `${name} takes no new work from its next renewal on, at most ${Math.ceil(renewMsOf(record.leaseMs) / 1000)} s from now`,
  );
  note('`temper host list` shows the slots that are still taken');
}

async function resumeNamed(name: string, options: JsonOption): Promise<void> {
  const { resumeHost } = await import('../../../infra/hosts/orders.ts');
  const { hosts } = await stateOf(options);
  const record = livingHost(name, await resumeHost(hosts, name));
  if (options.json) return printJson({ name, ...record });
  print(
    `${name} takes new work again from its next renewal on, at most ${Math.ceil(renewMsOf(record.leaseMs) / 1000)} s from now`,
  );
}

async function stateOf(options: HomeOption): Promise<SharedState> {
  return openSharedState((await runningConfigOf(options)).store);
}
