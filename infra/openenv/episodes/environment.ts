import pLimit from 'p-limit';
import { OpenEnvError } from '../protocol/messages.ts';
import { createEpisode, type Episode, type EpisodeEnd } from './episode.ts';
import { type ModelReply, type OfferedTool, readModelCall } from './model-call.ts';

/** A task of the set, by its id and its address. */
export interface TaskEntry {
  readonly id: string;
  readonly address: string;
}

/** The rollout behind an episode. */
export interface StartedRollout {
  /** The rollout's own id, with which its sessions' ids begin. */
  readonly rollout: string;
  readonly workflowId: string;
  /** Resolves once the rollout has ended and removed its sandbox; never rejects. */
  readonly end: Promise<EpisodeEnd>;
  cancel(): Promise<void>;
}

export interface EnvironmentDependencies {
  /** The tasks of the set, at least one. */
  readonly tasks: readonly TaskEntry[];
  /** The tools that are listed before an episode has begun. */
  readonly tools: readonly OfferedTool[];
  /** The rollouts that may run at once; more wait until one has ended. */
  readonly maxEpisodes: number;
  start(task: TaskEntry): Promise<StartedRollout>;
}

export interface RunningEpisode {
  readonly workflowId: string;
  readonly episode: Episode;
  /** Cancels the rollout if it still runs, and waits for its end. */
  end(): Promise<void>;
}

/** The episodes of all clients of a server. */
export interface Environment {
  readonly tools: readonly OfferedTool[];
  /** Chooses a task: by id or address, by a seed, or else the next one of the set. Throws an OpenEnvError. */
  choose(taskId: string | null, seed: number | null): TaskEntry;
  begin(task: TaskEntry): Promise<RunningEpisode>;
  /** Answers a model call of a session; null if the session belongs to no running episode. */
  ask(call: AskedCall, signal: AbortSignal): Promise<ModelReply | null>;
  /** Waits until no rollout runs or waits any more. */
  idle(): Promise<void>;
}

export interface AskedCall {
  /** The id of the gateway's session: the rollout and its epoch. */
  readonly session: string;
  readonly key: string;
  readonly body: unknown;
}

const unreadable: ModelReply = {
  text: 'This request has no conversation that a client of the environment could read.',
};

export function createEnvironment({ tasks, tools, maxEpisodes, start }: EnvironmentDependencies): Environment {
  const byName = namesOf(tasks);
  const episodes = new Map<string, Episode>();
  const limit = pLimit(maxEpisodes);
  const works = new Set<Promise<void>>();
  let last = -1;

  /** Runs one episode from its start to its end; `begun` gets it, or the error of its start. */
  async function run(task: TaskEntry, begun: PromiseWithResolvers<RunningEpisode>): Promise<void> {
    const started = await start(task).catch((error: unknown) => {
      begun.reject(error);
      return null;
    });
    if (started === null) return;
    const { rollout, workflowId, end, cancel } = started;
    const episode = createEpisode();
    let isOver = false;
    episodes.set(rollout, episode);
    begun.resolve({
      workflowId,
      episode,
      async end() {
        if (!isOver) await cancel();
        await end;
      },
    });
    episode.ended(await end);
    isOver = true;
    episodes.delete(rollout);
  }

  return {
    tools,
    choose(taskId, seed) {
      if (taskId !== null) {
        const named = byName.get(taskId);
        if (named !== undefined) return named;
        const some = tasks.slice(0, 3).map(({ id }) => id);
        throw new OpenEnvError(
          'VALIDATION_ERROR',
          `task_id: expected a task of this environment, such as ${some.join(', ')}, got ${JSON.stringify(taskId.slice(0, 200))}`,
        );
      }
      if (seed === null) last = (last + 1) % tasks.length;
      const chosen = tasks[seed === null ? last : seed % tasks.length];
      if (chosen === undefined) throw new Error('expected at least one task, got none');
      return chosen;
    },
    begin(task) {
      const begun = Promise.withResolvers<RunningEpisode>();
      const work = limit(() => run(task, begun));
      works.add(work);
      void work.finally(() => works.delete(work));
      return begun.promise;
    },
    async ask({ session, key, body }, signal) {
      const [, rollout = '', epoch = ''] = /^(.+)\.(\d+)$/.exec(session) ?? [];
      const episode = episodes.get(rollout);
      if (episode === undefined) return null;
      const call = readModelCall(body, { key, epoch: Number(epoch) });
      return call === null ? unreadable : episode.ask(call, signal);
    },
    async idle() {
      while (works.size > 0) await Promise.all(works);
    },
  };
}

/** Maps addresses, and ids that only one task has, to tasks. */
function namesOf(tasks: readonly TaskEntry[]): ReadonlyMap<string, TaskEntry> {
  const counts = new Map<string, number>();
  for (const { id } of tasks) counts.set(id, (counts.get(id) ?? 0) + 1);
  const unique = tasks.filter(({ id }) => counts.get(id) === 1);
  return new Map([
    ...unique.map((task) => [task.id, task] as const),
    ...tasks.map((task) => [task.address, task] as const),
  ]);
}
