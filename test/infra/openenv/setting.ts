import type { TestContext } from 'node:test';
import { createEnvironment, type StartedRollout } from '../../../infra/openenv/episodes/environment.ts';
import type { EpisodeEnd } from '../../../infra/openenv/episodes/episode.ts';
import { type OpenEnvServer, type OpenEnvServerOptions, startOpenEnvServer } from '../../../infra/openenv/server.ts';
import { until } from '../../helpers/until.ts';

const cancelled: EpisodeEnd = { outcome: 'cancelled', reward: null, stop: null, failure: null };
const submitted: EpisodeEnd = { outcome: 'scored', reward: 0.5, stop: 'submitted', failure: null };
const bash = { name: 'bash', description: 'Runs.', schema: { type: 'object' } };

// biome-ignore lint/suspicious/noExplicitAny: tests read replies as clients do
export const jsonOf = async (response: Response): Promise<any> => response.json();

/** A model call as a gateway sends it. */
interface AskedModel {
  /** Default: the first epoch of the first rollout. */
  readonly session?: string;
  readonly key: string;
  readonly messages?: readonly object[];
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** A server whose rollouts have an agent that is a loop over model calls, as mini is one. */
export interface Setting {
  readonly server: OpenEnvServer;
  /** The rollouts that have begun and not ended. */
  readonly running: Set<string>;
  /** Asks the model as a gateway does. */
  ask(call: AskedModel): Promise<Response>;
}

export interface Changes extends Partial<Pick<OpenEnvServerOptions, 'limits' | 'keys' | 'tls'>> {
  /** Whether the agents call their model. Default: yes. */
  readonly calls?: boolean;
  /** Resolves when rollouts may start. */
  readonly gate?: Promise<void>;
}

export async function startSetting(t: TestContext, changes: Changes = {}): Promise<Setting> {
  const {
    calls = true,
    gate,
    limits = { episodes: 2, idleMs: 60_000 },
    keys = { client: null, model: null },
  } = changes;
  const running = new Set<string>();
  let count = 0;

  async function start({ id }: { readonly id: string }): Promise<StartedRollout> {
    await gate;
    count += 1;
    const rollout = `rollout-${count}`;
    running.add(rollout);
    const end = Promise.withResolvers<EpisodeEnd>();
    if (calls) void play(rollout, id).then(end.resolve, () => undefined);
    return {
      rollout,
      workflowId: `openenv/${rollout}`,
      end: end.promise.finally(() => running.delete(rollout)),
      cancel: async () => end.resolve(cancelled),
    };
  }

  async function play(rollout: string, task: string): Promise<EpisodeEnd> {
    const messages: object[] = [{ role: 'user', content: `Solve ${task}.` }];
    for (let turn = 1; ; turn += 1) {
      const reply = await jsonOf(await ask({ session: `${rollout}.1`, key: `turn-${turn}`, messages }));
      const { message } = reply.choices[0];
      const { name, arguments: given } = message.tool_calls[0].function;
      if (name === 'submit') return submitted;
      messages.push({ role: 'assistant' }, { role: 'tool', content: `${name} ${given}` });
    }
  }

  const environment = createEnvironment({
    tasks: ['one', 'two', 'two'].map((id, index) => ({ id, address: `set#${index}` })),
    tools: [bash],
    maxEpisodes: limits.episodes,
    start,
  });
  const server = await startOpenEnvServer({
    environment,
    metadata: { name: 'test', description: 'tasks of a test', version: '1' },
    limits,
    keys,
    port: 0,
    listen: '127.0.0.1',
    tls: changes.tls ?? null,
    log: { warn: () => undefined },
  });
  const ask: Setting['ask'] = ({ session = 'rollout-1.1', key, messages = [], headers = {}, signal = null }) =>
    fetch(`${server.url}/model/v1/chat/completions`, {
      method: 'POST',
      signal,
      headers: { 'x-temper-session': session, 'idempotency-key': key, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({
        model: 'openenv',
        messages,
        tools: [{ function: { ...bash, parameters: {} } }, { function: { name: 'submit' } }],
      }),
    });
  t.after(() => server.close());
  return { server, running, ask };
}

/** A client of the protocol, without any library. */
export function connect({ server }: Pick<Setting, 'server'>) {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/ws`);
  const replies: string[] = [];
  let closed = false;
  socket.onmessage = ({ data }) => replies.push(String(data));
  socket.onclose = () => {
    closed = true;
  };
  const opened = new Promise<void>((resolve) => {
    socket.onopen = () => resolve();
  });
  const next = async () => JSON.parse(await until(() => replies.shift() ?? null));
  return {
    opened,
    next,
    isClosed: () => closed,
    close: () => socket.close(),
    send: async (message: object | string) => {
      await opened;
      socket.send(typeof message === 'string' ? message : JSON.stringify(message));
      return next();
    },
    sendOnly: (message: object) => socket.send(JSON.stringify(message)),
  };
}
