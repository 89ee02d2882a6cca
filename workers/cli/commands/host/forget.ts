import { userInfo } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, ScheduleNotFoundError } from '@temporalio/client';
import { bootClock } from '../../../../infra/hosts/boot-clock.ts';
import { declareLost } from '../../../../infra/hosts/orders.ts';
import type { HostRecord, Hosts } from '../../../../infra/store/hosts.ts';
import { pollers } from '../../../../infra/temporal/pollers.ts';
import { tellHostLost } from '../../../../infra/temporal/tell-host-lost.ts';
import { reaperId } from '../../../../workflows/contracts/ids.ts';
import { hostQueue } from '../../../../workflows/contracts/queues.ts';
import { type JsonOption, runningConfigOf } from '../../stack/command.ts';
import { knownHost } from '../../stack/hosts.ts';
import { openStackClient } from '../../stack/stack-client.ts';
import { confirm } from '../../text/confirm.ts';
import { live, print, printJson } from '../../text/output.ts';

export interface ForgetOptions extends JsonOption {
  readonly reason?: string;
  readonly yes?: true;
  readonly force?: true;
}

/** Declares a host lost, and tells its rollouts once it cannot act any more. */
export async function forgetHost(name: string, options: ForgetOptions): Promise<void> {
  const stack = await openStackClient(await runningConfigOf(options));
  const { hosts } = stack.shared;
  try {
    const record = knownHost(name, (await hosts.find(name))?.record ?? null);
    if (record.lost === null) {
      if (options.force !== true && (await pollers(stack.client, hostQueue(name), 'activity')).length > 0) {
        throw alive(name, 'its worker asks the Temporal server for work');
      }
      if (options.yes !== true) await confirm(question(name), `${name} stays as it is`);
      if (options.force !== true) await requireSilence(hosts, name, record);
    }
    const { generation, renewedAt } = record;
    const reason = options.reason ?? `forgotten by ${userInfo().username}`;
    const loss = { generation, reason, ...(options.force !== true && { renewedAt }) };
    const after = knownHost(name, await declareLost(hosts, name, loss));
    if (after.lost === null) throw alive(name, `it renewed its record at ${after.renewedAt}`);
    if (options.force === true) await leaseOver(name, record);
    const rollouts = await tellHostLost(stack.client, name, generation);
    await endReaper(stack.client, name);
    if (options.json) return printJson({ name, ...after, rollouts });
    print(`${name} is lost; rollouts that other hosts adopt or begin again: ${rollouts}`);
  } finally {
    await stack.close();
  }
}

/** Deletes the schedule of a host's reaper. The host creates it again if it ever comes back. */
async function endReaper(client: Client, host: string): Promise<void> {
  try {
    await client.schedule.getHandle(reaperId(host)).delete();
  } catch (error) {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
  }
}

const question = (name: string): string =>
  `Declare ${name} lost for ever? Agents that may still work there begin again elsewhere.`;

/** Waits until the host's lease is over without a renewal. Throws as soon as the host renews it. */
async function requireSilence(hosts: Hosts, name: string, record: HostRecord): Promise<void> {
  await leaseOver(name, record, async () => {
    const now = (await hosts.find(name))?.record;
    if (now !== undefined && now.renewedAt !== record.renewedAt) {
      throw alive(name, `it renewed its record at ${now.renewedAt}`);
    }
  });
}

/** Waits for as long as a host may act after a renewal, and looks at it meanwhile. */
async function leaseOver(name: string, { leaseMs }: HostRecord, look = async () => {}): Promise<void> {
  const endMs = bootClock.nowMs() + leaseMs;
  while (bootClock.nowMs() < endMs) {
    const left = Math.ceil((endMs - bootClock.nowMs()) / 1000);
    live(`waiting until ${name} may not act any more: ${left} s at most`);
    await sleep(leaseMs / 30);
    await look();
  }
  live('');
}

const alive = (name: string, evidence: string): Error =>
  new Error(
    `${name} is alive: ${evidence}; stop its processes first, take it out of service with \`temper host drain ${name}\`, ` +
      'or name --force if it cannot be stopped',
  );
