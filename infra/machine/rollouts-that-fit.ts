import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { isRemote, type SandboxChoice } from '../../workflows/contracts/sandbox-kinds.ts';
import { type Fit, fitOf, needOf, usualNeedText, usualTask } from './fit.ts';
import { readLevels } from './read-levels.ts';

/** The directory in which Docker keeps containers unless it is configured otherwise. */
const dockerDirectory = '/var/lib/docker';

/** The part of a stack's settings that decides which disks its rollouts fill. */
export interface RolloutDisks {
  /** The home of the stack; it may not exist yet. */
  readonly home: string;
  readonly sandbox: SandboxChoice;
}

/** Returns the directories whose disks rollouts fill. */
export function rolloutDirectories({ home, sandbox }: RolloutDisks): readonly string[] {
  const inDocker = sandbox === 'docker' || sandbox === 'auto';
  return [firstExisting(home), ...(inDocker ? [dockerDirectory] : [])];
}

function firstExisting(directory: string): string {
  const parent = dirname(directory);
  return parent === directory || existsSync(directory) ? directory : firstExisting(parent);
}

export interface MachineFit {
  /** The rollouts that fit if nothing else uses the machine. */
  readonly atMost: Fit;
  /** The rollouts that fit into what is free now. */
  readonly now: Fit;
  /** The use of each of them in words. */
  readonly need: string;
}

/** Returns how many rollouts of the usual limits fit on this machine if each uses all that it may. */
export function rolloutsThatFit(disks: RolloutDisks): MachineFit {
  const levels = readLevels({ directories: rolloutDirectories(disks) });
  const need = needOf(usualTask, disks.sandbox);
  return {
    atMost: fitOf(levels, need, 'total'),
    now: fitOf(levels, need, 'free'),
    need: usualNeedText(disks.sandbox),
  };
}

/** The defaults of `TEMPER_CAPACITY` on a machine where that many fit. */
const usualCapacity = 4;
const remoteCapacity = 64;

/** Returns the default number of agents that run at once: no more than fit, and one at least. */
export function defaultCapacity(disks: RolloutDisks): number {
  const usual = isRemote(disks.sandbox) ? remoteCapacity : usualCapacity;
  return Math.max(1, Math.min(usual, rolloutsThatFit(disks).atMost.rollouts));
}

/** Describes what a capacity costs that is above the number of rollouts that fit; null if it is not. */
export function capacityWarning(
  capacity: number,
  { atMost: { rollouts, limitedBy }, need }: MachineFit,
): string | null {
  if (capacity <= rollouts || limitedBy === null) return null;
  return (
    `TEMPER_CAPACITY is ${capacity}, and only ${rollouts} rollouts fit on this machine if each ${need}, ` +
    `because of ${limitedBy.limit}: the host takes more only while enough is free, and agents that grow together may run out of it`
  );
}
