import { log } from '@temporalio/activity';
import { type Client, ScheduleNotFoundError } from '@temporalio/client';
import { attemptAll } from '../../infra/attempt-all.ts';
import { type DiskState, diskState } from '../../infra/machine/disk-pause.ts';
import type { Level } from '../../infra/machine/level.ts';
import { pauseSignal, resumeSignal, runStatusQuery } from '../../workflows/contracts/messages.ts';
import { retentionSchedule } from '../../workflows/contracts/retention.ts';
import { atBoundary } from '../boundary.ts';
import type { ControlActivities } from '../interfaces/control.ts';

export interface DiskGuardDependencies {
  readonly client: Pick<Client, 'workflow' | 'schedule'>;
  /** The machine of this control worker. Another control worker may have other disks. */
  readonly machine: string;
  /** Returns the machines that had a control worker in the last minutes. */
  controlMachines(): Promise<ReadonlySet<string>>;
  /** Reads the levels of the disks that a stack fills. */
  readDisks(): readonly Level[];
  /** Shows a sentence in `temper status`; null withdraws it. */
  setNote(text: string | null): Promise<void>;
}

/** The beginning of the reason of every pause by the guard, by which it knows its own. */
const reasonStart = (machine: string): string => `the disk of the control worker on ${machine} is nearly full: `;
const machineOfReason = /^the disk of the control worker on (\S+) is nearly full: /;
const openQuery = 'WorkflowType IN ("trainingRun", "evaluationSweep", "regrade") AND ExecutionStatus="Running"';

/** Creates the activity that pauses runs, sweeps and regrades while a disk of the stack is nearly full. */
export function createDiskGuard(deps: DiskGuardDependencies): Pick<ControlActivities, 'guardDisk'> {
  return {
    guardDisk: () =>
      atBoundary(async () => {
        const { paused, resumed } = await guardDisk(deps);
        if (paused.length > 0) log.warn('paused, because the disk is nearly full', { paused });
        if (resumed.length > 0) log.info('resumed, because the disk has space again', { resumed });
        return { paused, resumed };
      }),
  };
}

/**
 * Pauses what is open while a disk is low, and resumes what it paused once all have enough. A pause by hand stays, and one by a
 * control worker on another machine as long as that has one.
 */
export async function guardDisk(deps: DiskGuardDependencies) {
  const { client, readDisks, setNote } = deps;
  const states = readDisks().map(diskState);
  const low = states.find(({ state }) => state === 'low');
  if (low !== undefined) {
    const reason = reasonText(deps.machine, low);
    const paused = await pauseAll(client, reason);
    await setNote(`runs are paused: ${reason}`);
    if (paused.length > 0) await collectNow(client);
    return { paused, resumed: [] };
  }
  if (states.some(({ state }) => state !== 'enough')) return { paused: [], resumed: [] };
  await setNote(null);
  return { paused: [], resumed: await resumeOwn(deps) };
}

function reasonText(machine: string, { freeMb, resumeAtMb, limit }: DiskState): string {
  const gigabytes = (megabytes: number): string => `${(megabytes / 1024).toFixed(2)} GB`;
  return `${reasonStart(machine)}${gigabytes(freeMb)} are free of ${limit}; free some space (\`temper gc --dry-run\` shows what can go); it resumes by itself from ${gigabytes(resumeAtMb)} on`;
}

/** Pauses what is open and not paused; returns the workflow ids. */
async function pauseAll(client: DiskGuardDependencies['client'], reason: string): Promise<readonly string[]> {
  const paused: string[] = [];
  await attemptAll(await openByPhase(client, (phase) => phase !== 'paused'), 'all runs to be paused', async (id) => {
    await client.workflow.getHandle(id).signal(pauseSignal, reason, 'unless-paused');
    paused.push(id);
  });
  return paused;
}

/** Resumes what this guard paused, or one on a machine that has no control worker any more; returns the workflow ids. */
async function resumeOwn({ client, machine, controlMachines }: DiskGuardDependencies): Promise<readonly string[]> {
  const resumed: string[] = [];
  const others = [...(await controlMachines())].filter((other) => other !== machine);
  const mayResume = (reason: string): boolean => {
    const pausedOn = machineOfReason.exec(reason)?.[1];
    return pausedOn !== undefined && !others.includes(pausedOn);
  };
  await attemptAll(await openByPhase(client, (phase) => phase === 'paused'), 'all runs to be resumed', async (id) => {
    const handle = client.workflow.getHandle(id);
    const { pausedBecause } = await handle.query(runStatusQuery);
    const reason = pausedBecause ?? '';
    if (!mayResume(reason)) return;
    await handle.signal(resumeSignal, reason);
    resumed.push(id);
  });
  return resumed;
}

/** The workflow ids of open runs, sweeps and regrades, by the phase that their memo names. */
async function openByPhase(
  client: DiskGuardDependencies['client'],
  wanted: (phase: unknown) => boolean,
): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { workflowId, memo } of client.workflow.list({ query: openQuery })) {
    if (wanted(memo?.phase)) ids.push(workflowId);
  }
  return ids;
}

/** Makes a pass of retention now. */
async function collectNow(client: DiskGuardDependencies['client']): Promise<void> {
  await client.schedule
    .getHandle(retentionSchedule)
    .trigger()
    .catch((error: unknown) => {
      if (!(error instanceof ScheduleNotFoundError)) throw error;
    });
}
