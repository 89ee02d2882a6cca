import { readdir, readFile, stat } from 'node:fs/promises';
import { futureLimits } from '../../../infra/kits/embedded-policy/server/tinker/futures.ts';
import type { Config } from '../../../infra/settings/config.ts';
import { type ProcessState, stateMessage } from '../../../workers/report-state.ts';
import type { PartName } from '../../../workers/up/part.ts';
import type { RunningStack } from '../../../workers/up/start-stack.ts';
import { until } from '../../helpers/until.ts';

/** The resources that a part of a stack holds. Null: the part cannot tell. */
export interface PartState {
  /** Megabytes of the whole process. */
  readonly rss: number;
  /** Megabytes of its main thread's JavaScript objects and buffers, after a full garbage collection. */
  readonly heap: number | null;
  readonly files: number;
  /** Timers, sockets, watchers and others that keep the process running. */
  readonly active: number | null;
  /** Processes that it started, and that these started. */
  readonly children: number;
  readonly zombies: number;
}

/** The growth that is no leak: noise of measurement, and connections that are opened as needed. */
const allowances: Readonly<Record<keyof PartState, number>> = {
  rss: 96,
  heap: 3,
  files: 4,
  active: 3,
  children: 0,
  zombies: 0,
};
/** The heap of a part whose caches of fixed size take longer to fill: the results that a policy server keeps. */
const filling: Readonly<Partial<Record<PartName, number>>> = { policy: futureLimits.readBytes / 2 ** 20 };

/** Describes each measure by which a part has grown. The memory of the Temporal server, which caches its database, is its own. */
export function grownSince(before: StackStates, now: StackStates): readonly string[] {
  return [...now].flatMap(([name, state]) => {
    const own = before.get(name);
    const measures = Object.keys(allowances) as (keyof PartState)[];
    return measures.flatMap((measure) => {
      const [was, is] = [own?.[measure] ?? 0, state[measure] ?? 0];
      const allowed = allowances[measure] + (measure === 'heap' || measure === 'rss' ? (filling[name] ?? 0) : 0);
      const isOurs = name !== 'temporal' || measure !== 'rss';
      return isOurs && is > was + allowed
        ? [`${measure} of ${name}: ${was.toFixed(1)} before, ${is.toFixed(1)} now`]
        : [];
    });
  });
}

export type StackStates = ReadonlyMap<PartName, PartState>;

/** Reads the state of every part. */
export async function statesOf(stack: RunningStack, config: Config): Promise<StackStates> {
  const processes = await allProcesses();
  const found = await Promise.all(
    stack.parts().map(async ({ name, pid }) => {
      if (pid === null) throw new Error(`expected ${name} to run`);
      const below = descendants(processes, pid);
      const own = name === 'temporal' ? await stateFromOutside(pid) : await stateFromInside(config, name, pid);
      const zombies = below.filter(({ state }) => state === 'Z').length;
      return [name, { ...own, children: below.length - zombies, zombies }] as const;
    }),
  );
  return new Map(found);
}

const megabyte = 2 ** 20;
type OwnState = Omit<PartState, 'children' | 'zombies'>;

/** The state of a process that is not ours: the Temporal server. */
async function stateFromOutside(pid: number): Promise<OwnState> {
  const [, kilobytes = ''] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  const files = (await readdir(`/proc/${pid}/fd`)).length;
  return { rss: Number(kilobytes) / 1024, heap: null, files, active: null };
}

/** Asks one of temper's processes for its state, which it logs. */
async function stateFromInside({ paths }: Config, name: PartName, pid: number): Promise<OwnState> {
  const log = `${paths.logs}/${name}.log`;
  const { size } = await stat(log);
  process.kill(pid, 'SIGUSR2');
  const { memory, openFiles, active } = await until(async () => {
    const lines = (await readFile(log)).subarray(size).toString().split('\n').slice(0, -1);
    const line = lines.find((one) => one.includes(`"msg":"${stateMessage}"`));
    return line === undefined ? null : (JSON.parse(line) as ProcessState);
  }, 120_000);
  return {
    rss: memory.rss / megabyte,
    heap: (memory.heapUsed + memory.external) / megabyte,
    files: openFiles,
    active: Object.values(active).reduce((sum, count) => sum + count, 0),
  };
}

interface ProcessLine {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
}

async function allProcesses(): Promise<readonly ProcessLine[]> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => {
      const text = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
      const [state = '', parent = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ');
      return { pid: Number(name), parent: Number(parent), state };
    }),
  );
  return found;
}

function descendants(processes: readonly ProcessLine[], pid: number): readonly ProcessLine[] {
  const children = processes.filter(({ parent }) => parent === pid);
  return [...children, ...children.flatMap((child) => descendants(processes, child.pid))];
}

/** Formats states as a table, for people. */
export function statesText(states: StackStates): string {
  const rows = [...states].map(([name, { rss, heap, files, active, children, zombies }]) => {
    const numbers = [`${rss.toFixed(0)} MB`, heap === null ? '-' : `${heap.toFixed(1)} MB`, files, active ?? '-'];
    return [name, ...numbers, children, zombies].map((cell) => String(cell).padEnd(10)).join('');
  });
  const titles = ['part', 'rss', 'heap', 'files', 'active', 'children', 'zombies'];
  return [titles.map((title) => title.padEnd(10)).join(''), ...rows].join('\n');
}
