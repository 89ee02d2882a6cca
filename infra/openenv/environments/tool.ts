import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { HostCall } from '../../../workflows/contracts/host-tools.ts';
import type { HostTool, HostToolContext } from '../../gateway/tools/host-tool.ts';
import {
  actionSchemaOf,
  connectEnvironment,
  type EnvironmentConnection,
  type EnvironmentReply,
  type NoReply,
  unavailable,
} from './connection.ts';
import { type EnvironmentTask, environmentFile, environmentTask } from './environment-task.ts';
import type { Environments, NamedEnvironment } from './environments.ts';

const name = 'environment';
const input = {
  action: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('The action, as an object. Leave it out in the first call, which shows the first observation.'),
};
const given = z.object(input);

/** The time limit of one call. It is shorter than the gateway's own, which counts as a failure of the agent. */
const defaultCallMs = 240_000;
const limitSec = 290;
/** The time for the reset that shows whether an environment works. With the limit of a call, it fits the gateway's. */
const resetMs = 40_000;
/**
 * The most connections of one gateway. One more closes the one that was used least recently, whose episode is played again at its
 * next call.
 */
const maxConnections = 256;
/** The time without a call after which a connection closes. */
const idleMs = 600_000;
/** Characters of an observation; fewer than the gateway records, so that it shortens none. */
const shownCharacters = 48_000;
const schemaCharacters = 8_000;
const over = 'The episode is over.';

/** An episode in progress. */
interface Episode {
  readonly at: NamedEnvironment;
  readonly connection: EnvironmentConnection;
  readonly task: EnvironmentTask;
  /** The time that an action must have had before its lateness ends the episode. */
  readonly leastActionMs: number;
  /** The time for which the environment is tried again while it is away; undefined for the usual one. */
  readonly connectMs: number | undefined;
  /** The calls that it has seen. */
  calls: number;
  rewards: number[];
  isOver: boolean;
}

/**
 * Creates the host tool by which an agent plays the OpenEnv environment of its task. The rewards are recorded as the answer to the
 * task, and the agent does not see them. An episode is its recorded calls: if its connection is gone, as after a restart of the
 * gateway, it is played again, which an environment must allow by giving the same results for the same reset and actions.
 */
export function createEnvironmentTool(
  environments: Environments,
  { connectMs, callMs = defaultCallMs }: { readonly connectMs?: number; readonly callMs?: number } = {},
): HostTool {
  const open = new LRUCache<string, Episode>({
    max: maxConnections,
    ttl: idleMs,
    ttlAutopurge: true,
    updateAgeOnGet: true,
    dispose: ({ connection }) => connection.close(),
  });

  async function call({ action }: z.output<typeof given>, context: HostToolContext) {
    const earlier = context.calls.filter(({ tool, failed }) => tool === name && failed !== true);
    if (earlier.at(-1)?.result.endsWith(over) === true) return over;
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(callMs)]);
    const task = await taskOf(context.task);
    const at = await environments.find(task.environment);
    const episode = await episodeOf(at, { task, earlier, session: context.session }, signal);
    const first = earlier.length === 0 ? await begin(episode, signal) : '';
    const text = action === undefined && first !== '' ? first : await play(episode, action ?? {}, signal);
    episode.calls = earlier.length + 1;
    if (episode.isOver) open.delete(context.session);
    const reward = rewardOf(episode);
    return reward === null ? text : { text, answer: String(reward) };
  }

  /** Returns the open episode of a session, or opens one and plays the earlier calls again. */
  async function episodeOf(
    at: NamedEnvironment,
    { task, earlier, session }: { task: EnvironmentTask; earlier: readonly HostCall[]; session: string },
    signal: AbortSignal,
  ): Promise<Episode> {
    const known = open.get(session);
    const isCurrent = known !== undefined && known.calls === earlier.length && earlier.length > 0;
    if (isCurrent && (await known.connection.isAlive())) return known;
    open.delete(session);
    const connection = await connectEnvironment(at, signal, connectMs);
    const fixed = { at, connection, task, leastActionMs: callMs / 2, connectMs };
    const episode: Episode = { ...fixed, calls: 0, rewards: [], isOver: false };
    open.set(session, episode);
    for (const [index, { arguments: args, result }] of earlier.entries()) {
      const { action } = given.parse(JSON.parse(args));
      const first = index === 0 ? await begin(episode, signal) : '';
      const text = action === undefined && first !== '' ? first : await play(episode, action ?? {}, signal);
      if (text === result) continue;
      open.delete(session);
      throw unavailable(at, `it had to play action ${index + 1} again and gave another result, so the episode is lost`);
    }
    return episode;
  }

  const tool: HostTool<typeof input> = {
    name,
    description:
      'The environment of the task. Call it without an action first: it shows the first observation and the form of actions. Then give it one action in each call.',
    input,
    timeoutSec: limitSec,
    check: async (task) => {
      await environments.find((await taskOf(task)).environment);
    },
    call: (args, context) => call(args, context).catch((error: unknown) => refuse(error, context)),
  };
  // The gateway calls it with arguments that its own schema has read.
  return tool as unknown as HostTool;
}

/** Throws the failure of a call as a lost environment, since no arguments of an agent make a call fail. */
function refuse(error: unknown, { task, signal }: HostToolContext): never {
  signal.throwIfAborted();
  if (error instanceof TemperFailure && error.type === 'EnvironmentUnavailable') throw error;
  const message = `environment of task ${task.id}: ${errorMessage(error)}`;
  throw new TemperFailure('EnvironmentUnavailable', message, { cause: error });
}

async function taskOf(task: HostToolContext['task']): Promise<EnvironmentTask> {
  const bytes = await task.file(environmentFile);
  if (bytes === null) {
    const message = `task ${task.id}: expected tools/${environmentFile}, got no such file`;
    throw new TemperFailure('UnsupportedTask', message);
  }
  return environmentTask.parse(JSON.parse(Buffer.from(bytes).toString()));
}

/** Resets the environment. Returns its first observation and the form of its actions. */
async function begin(episode: Episode, signal: AbortSignal): Promise<string> {
  const { at } = episode;
  const reply = await episode.connection.reset(episode.task.reset, signal);
  if ('refusal' in reply) throw unavailable(at, `it refused to begin: ${reply.refusal}`);
  const schema = await actionSchemaOf(at, signal);
  const form =
    schema === null ? '' : `\nActions have this JSON schema: ${JSON.stringify(schema).slice(0, schemaCharacters)}`;
  return `${take(episode, reply)}${form}`;
}

/**
 * Plays one action. One that gets no reply ends the episode with the rewards until then: whether an environment hangs is in the
 * agent's hands, so that this must be no failure from outside, which is repeated without a score.
 */
async function play(episode: Episode, action: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<string> {
  if (episode.isOver) return over;
  const startedMs = performance.now();
  const reply = await episode.connection.step(action, signal);
  if (!('without' in reply)) return take(episode, reply);
  const waitedMs = performance.now() - startedMs;
  // A call also connects and plays earlier actions again. If that took most of its time, the action had too little.
  if (reply.without === 'late' && waitedMs < episode.leastActionMs) {
    throw unavailable(episode.at, 'it took so long to begin again that no time was left for an action');
  }
  if (reply.without === 'failed') await requireReset(episode);
  episode.isOver = true;
  return `error: ${noReply(reply, waitedMs)}; what was reached before it counts\n${over}`;
}

/**
 * Throws EnvironmentUnavailable unless the environment takes a new connection and answers a reset. One that does works, so that it
 * failed because of the action; one that does not is gone, for whatever reason.
 */
async function requireReset({ at, task, connectMs }: Episode): Promise<void> {
  // The action may have used the time of its call up.
  const signal = AbortSignal.timeout(resetMs);
  const connection = await connectEnvironment(at, signal, connectMs);
  try {
    const reply = await connection.reset(task.reset, signal);
    if ('refusal' in reply)
      throw unavailable(at, `it failed at an action and refused to begin again: ${reply.refusal}`);
  } finally {
    connection.close();
  }
}

function noReply({ without }: NoReply, waitedMs: number): string {
  if (without === 'late') return `the environment did not answer this action in ${Math.round(waitedMs / 1_000)} s`;
  if (without === 'failed') return 'the environment failed at this action';
  return 'the environment answered this action with more than 16 MB, or refused its size';
}

/** Takes the reward of a reply, and returns what the agent sees of it. */
function take(episode: Episode, reply: EnvironmentReply): string {
  if ('refusal' in reply) return `error: ${reply.refusal.slice(0, shownCharacters)}`;
  const { observation, reward, done } = reply;
  if (reward !== null) episode.rewards.push(reward);
  episode.isOver = done;
  const text = JSON.stringify(observation);
  const shown =
    text.length <= shownCharacters
      ? text
      : `${text.slice(0, shownCharacters)}\n[${text.length - shownCharacters} characters left out]`;
  return done ? `${shown}\n${over}` : shown;
}

const rewardOf = ({ rewards, task }: Episode): number | null =>
  task.reward === 'sum' && rewards.length > 0 ? rewards.reduce((sum, one) => sum + one, 0) : (rewards.at(-1) ?? null);
