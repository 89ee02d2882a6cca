import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { builtInHostTools } from '../../workflows/contracts/host-tools.ts';
import { type NetworkMode, networkModes } from '../../workflows/contracts/network.ts';
import { networkLacks } from '../egress/grant-network.ts';
import { type HarborTask, imagesOf, ofStep } from '../harbor/harbor-task.ts';
import { type HostVariables, neededVariables } from '../harbor/host-variables.ts';
import { mostCpusOf } from '../sandbox/needs.ts';
import type { FoundTask } from './find-task.ts';
import { gradings, mostMemoryOf, type Need, type NeedName, type NeedyHost, needs } from './task-needs.ts';

/** The host on which the tasks are to run. */
export interface CheckedHost extends NeedyHost {
  readonly cpus: number;
  /** The network that its operator allows to tasks. */
  readonly network: NetworkMode;
  /** The variables of its environment that tasks may have. */
  readonly variables: HostVariables;
  /** Whether its operator has given modules with host tools. Which tools they have is known only where they run. */
  readonly hasOwnTools: boolean;
}

/** Tasks that are refused at their start, because the operator's settings give less than they need. */
export interface UngrantedTasks {
  /** The setting, with a value that lets the tasks run. */
  readonly setting: string;
  readonly count: number;
  readonly example: string;
}

/** Tasks of a set that are refused for the same reason. */
export interface RefusedTasks {
  readonly type: string;
  readonly reason: string;
  readonly count: number;
  /** The values that were found instead of the expected ones, most frequent first. */
  readonly got: readonly { readonly value: string; readonly count: number }[];
  readonly example: string;
}

export interface NeedyTasks {
  readonly need: NeedName;
  readonly count: number;
  readonly what: string;
  readonly example: string;
  /** The file and what is in it, by which the example shows its need. */
  readonly place?: string;
}

/** Tasks whose tests get the agent's work in the same way. */
export interface GradedTasks {
  readonly sandbox: HarborTask['gradedIn'];
  readonly what: string;
  readonly count: number;
  readonly example: string;
}

/** The content of a set of tasks, and its demands on a host. */
export interface SetCheck {
  readonly tasks: number;
  readonly usable: number;
  readonly images: number;
  /** The most that a task asks for. */
  readonly largest: { readonly cpus: number; readonly memoryMb: number; readonly diskMb: number };
  readonly refused: readonly RefusedTasks[];
  /** The number of usable tasks that need other settings. */
  readonly ungranted: number;
  readonly settings: readonly UngrantedTasks[];
  readonly graded: readonly GradedTasks[];
  readonly needs: readonly NeedyTasks[];
}

export interface SetChecker {
  /** Reads a task and counts it. Throws what is no fault of the task. */
  add(found: FoundTask): Promise<void>;
  result(): SetCheck;
}

interface Group {
  count: number;
  example: string;
  readonly got: Map<string, number>;
  readonly place?: string | undefined;
}

const shownValues = 5;

/** The reason to refuse a task, and in effect its set: runs and sweeps find tasks by their ids. */
const secondId = 'expected each id once in a set';

/** Creates a checker of sets of any size: it keeps counts and ids, and no task. */
export function createSetChecker(host: CheckedHost): SetChecker {
  const refused = new Map<string, Group & { readonly type: string; readonly reason: string }>();
  const needed = new Map<NeedName, Group>();
  const graded = new Map<HarborTask['gradedIn'], Pick<Group, 'count' | 'example'>>();
  const settings = new Map<string, Pick<Group, 'count' | 'example'>>();
  const images = new Set<string>();
  const ids = new Set<string>();
  let largest: SetCheck['largest'] = { cpus: 0, memoryMb: 0, diskMb: 0 };
  let tasks = 0;
  let usable = 0;
  let ungranted = 0;

  function refuse(id: string, type: string, { reason, got }: Refusal): void {
    const key = `${type} ${reason}`;
    const group = refused.get(key) ?? { type, reason, count: 0, example: id, got: new Map<string, number>() };
    refused.set(key, { ...group, ...counted(group, id) });
    if (got !== null) group.got.set(got, (group.got.get(got) ?? 0) + 1);
  }

  function note(id: string, task: HarborTask): void {
    usable += 1;
    const parts = task.steps.length === 0 ? [task] : task.steps.map((_, index) => ofStep(task, index + 1));
    for (const one of imagesOf(task)) images.add(one);
    largest = larger(largest, task);
    const lacking = lackingSettings(task, host);
    if (lacking.length > 0) ungranted += 1;
    for (const one of lacking) settings.set(one, counted(settings.get(one) ?? { count: 0, example: id }, id));
    const { gradedIn } = task;
    graded.set(gradedIn, counted(graded.get(gradedIn) ?? { count: 0, example: id }, id));
    for (const [name, { isNeeded, place }] of Object.entries<Need>(needs) as [NeedName, Need][]) {
      const needy = parts.find((part) => isNeeded(part, host));
      if (needy === undefined) continue;
      const group = needed.get(name) ?? { count: 0, example: id, got: new Map<string, number>() };
      const isExample = group.count === 0 || id < group.example;
      const shown = isExample ? (place?.(needy) ?? undefined) : group.place;
      needed.set(name, { ...group, ...counted(group, id), place: shown });
    }
  }

  return {
    async add({ id, address, read }) {
      tasks += 1;
      try {
        const isSecond = ids.has(id);
        ids.add(id);
        const task = await read();
        if (isSecond) return refuse(id, 'MalformedTask', { reason: secondId, got: id });
        const lacking = tooLarge(task, host);
        if (lacking === null) note(id, task);
        else refuse(id, 'UnsupportedTask', lacking);
      } catch (error) {
        if (!(error instanceof TemperFailure)) throw error;
        refuse(id, error.type, refusalIn(error.message, address));
      }
    },
    result: () => ({
      tasks,
      usable,
      images: images.size,
      largest,
      refused: mostFirst([...refused.values()].map(({ got, ...group }) => ({ ...group, got: mostFrequent(got) }))),
      ungranted,
      settings: mostFirst([...settings].map(([setting, group]) => ({ setting, ...group }))),
      graded: mostFirst([...graded].map(([sandbox, group]) => ({ sandbox, what: gradings[sandbox], ...group }))),
      needs: mostFirst([...needed].map((one) => needyOf(one, host))),
    }),
  };
}

function needyOf([need, { count, example, place }]: readonly [NeedName, Group], host: CheckedHost): NeedyTasks {
  const { what }: Need = needs[need];
  const said = typeof what === 'string' ? what : what(host);
  return { need, count, what: said, example, ...(place !== undefined && { place }) };
}

const mostFirst = <Counted extends { readonly count: number }>(all: readonly Counted[]): readonly Counted[] =>
  all.toSorted((one, other) => other.count - one.count);

/** The first id in order is the example, since tasks are read several at once. */
const counted = ({ count, example }: Pick<Group, 'count' | 'example'>, id: string) => ({
  count: count + 1,
  example: id < example ? id : example,
});

const mostFrequent = (got: ReadonlyMap<string, number>): RefusedTasks['got'] =>
  [...got]
    .map(([value, count]) => ({ value, count }))
    .sort((one, other) => other.count - one.count)
    .slice(0, shownValues);

const larger = ({ cpus, memoryMb, diskMb }: SetCheck['largest'], { description }: HarborTask): SetCheck['largest'] => ({
  cpus: Math.max(cpus, mostCpusOf(description)),
  memoryMb: Math.max(memoryMb, mostMemoryOf(description)),
  diskMb: Math.max(diskMb, description.diskMb, description.testSandbox?.diskMb ?? 0),
});

interface Refusal {
  readonly reason: string;
  readonly got: string | null;
}

function tooLarge({ description }: HarborTask, host: CheckedHost): Refusal | null {
  const cpus = mostCpusOf(description);
  return cpus <= host.cpus
    ? null
    : { reason: `expected at most the ${host.cpus} CPUs of this host`, got: String(cpus) };
}

/** Returns the settings that the operator has to change before a task can run. */
function lackingSettings(task: HarborTask, { network, variables, hasOwnTools }: CheckedHost): readonly string[] {
  const lacks = networkLacks(task.description, network);
  const mode = networkModes.findLast((one) => lacks.some((lack) => lack.mode === one));
  const builtIn: readonly string[] = builtInHostTools;
  const tools = hasOwnTools ? [] : (task.description.hostTools ?? []).filter((name) => !builtIn.includes(name));
  const missing = neededVariables(task).filter((name) => !Object.hasOwn(variables, name));
  return [
    ...(mode === undefined ? [] : [`TEMPER_NETWORK=${mode}`]),
    ...(tools.length === 0 ? [] : [`TEMPER_TOOLS, with a module that has ${tools.join(', ')}`]),
    ...(missing.length === 0 ? [] : [`TEMPER_TASK_VARIABLES=${missing.join(',')}`]),
  ];
}

/** The row or the directory of a task before the name of its file, but not the directories that every task in Harbor's format has. */
const ownPlace = /^(?:\S+: row \d+: |(?!(?:environment|tests)\/)(?:\S|(?<!:) )*\/(?=[^/\s:]+: ))/;

/** Separates what a message says of every such task from what it says of this one: its address, its row, and the value. */
function refusalIn(message: string, address: string): Refusal {
  const own = message.replace(`${address}: `, '').replace(ownPlace, '');
  const [reason = '', got] = own.split(/, got (.*)$/s, 2);
  return { reason, got: got === undefined ? null : (got.split('; ')[0] ?? '') };
}
