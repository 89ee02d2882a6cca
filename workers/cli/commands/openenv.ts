import { Command } from 'commander';
import type { UpstreamModel } from '../../../infra/gateway/upstream/upstreams.ts';
import type { TaskEntry } from '../../../infra/openenv/episodes/environment.ts';
import { readServerTls } from '../../../infra/server-tls.ts';
import type { Config } from '../../../infra/settings/config.ts';
import { isLoopback } from '../../../infra/settings/listen.ts';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { RolloutRequest } from '../../../workflows/contracts/rollout.ts';
import { watchListenTls } from '../../watch-listen-tls.ts';
import { agentOf, agentOptionsOption, readAgentOptions } from '../follow/agent-options.ts';
import { onInterrupt } from '../follow/interrupt.ts';
import { offlineTestsOption } from '../follow/network-options.ts';
import { requireReward } from '../follow/require-reward.ts';
import { type HomeOption, runningConfigOf, sandboxOption, stackCommand, wholeNumber } from '../stack/command.ts';
import type { StackClient } from '../stack/stack-client.ts';
import { asUsageError, Interrupted, UsageError } from '../text/errors.ts';
import { counted, note, print } from '../text/output.ts';

interface ServeOptions
  extends HomeOption,
    Pick<RolloutRequest, 'sandbox' | 'maxTurns' | 'rewardPolicy' | 'offlineTests'> {
  readonly tasks: string;
  readonly upstream: string;
  readonly agentOptions?: string;
  readonly agentTimeout?: number;
  readonly episodes?: number;
  readonly idle: number;
  readonly listen: string;
  readonly port: number;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

export function openenvCommand(): Command {
  const serve = stackCommand(
    'serve',
    'Serves a task set as an OpenEnv environment until Ctrl-C. An episode is a rollout whose model is the client.',
    'temper openenv serve --tasks ./tasks --port 8000',
  )
    .requiredOption('--tasks <dir|address>', 'a directory of tasks, or an address such as generated:test/1?count=8')
    .option('--upstream <name>', 'the entry of upstreams.json by which the gateway reaches this server', 'openenv')
    .addOption(sandboxOption().default('auto'))
    .addOption(offlineTestsOption())
    .addOption(agentOptionsOption())
    .option('--episodes <n>', 'clients at once (default: the capacity of this host)', wholeNumber(1, 500))
    .option('--max-turns <n>', 'maximum number of steps per episode', wholeNumber(1, 100_000), 100)
    .option(
      '--agent-timeout <seconds>',
      "time limit of an episode before its evaluation (default: the task's own)",
      wholeNumber(1, 1_000_000),
    )
    .option('--idle <seconds>', 'time without a message after which an episode ends', wholeNumber(1, 840), 600)
    .option('--reward-policy <name>', 'how test results map to a reward: binary, fraction, fail-to-pass, or your own')
    .option(
      '--listen <address>',
      'address to listen on; any but the loopback address needs TLS and a token',
      '127.0.0.1',
    )
    .option('--port <n>', 'port to listen on', wholeNumber(1, 65_535), 8000)
    .option('--tls-cert <file.pem>', 'certificate for TLS; a renewed one is served without a restart')
    .option('--tls-key <file.pem>', 'key of the certificate')
    .action(serveEnvironment);
  return new Command('openenv').description('Serves tasks as an OpenEnv environment.').addCommand(serve);
}

async function serveEnvironment(options: ServeOptions): Promise<void> {
  const { openStackClient } = await import('../stack/stack-client.ts');
  const config = await runningConfigOf(options);
  const upstream = await upstreamOf(options, config);
  const access = await accessOf(options, config, upstream);
  const agentOptions = await readAgentOptions(options);
  await agentOf({ agent: 'mini', agentOptions }, config);
  if (options.rewardPolicy !== undefined) await requireReward(options.rewardPolicy, config);
  const interrupt = onInterrupt('ending the episodes; waiting for the clean-up of their rollouts');
  const stack = await openStackClient(config);
  try {
    await serveOn(stack, { options, agentOptions, access }, interrupt.first);
    throw new Interrupted('interrupted: all episodes have ended');
  } finally {
    interrupt.release();
    await stack.close();
  }
}

interface Serving {
  readonly options: ServeOptions;
  readonly agentOptions: RolloutRequest['agentOptions'];
  readonly access: Awaited<ReturnType<typeof accessOf>>;
}

async function serveOn(stack: StackClient, { options, agentOptions, access }: Serving, stop: Promise<void>) {
  const { createEnvironment } = await import('../../../infra/openenv/episodes/environment.ts');
  const { startOpenEnvServer } = await import('../../../infra/openenv/server.ts');
  const { tools } = await import('../../../infra/agents/mini/tools.ts');
  const { packageVersion } = await import('../../../infra/package-version.ts');
  const { cancelLeftOver, createEpisodeStarter } = await import('./openenv/start-episode.ts');
  const { upstream, sandbox, maxTurns, rewardPolicy, agentTimeout, offlineTests } = options;
  const tasks = await tasksOf(options, stack);
  const left = await cancelLeftOver(stack.client, upstream);
  if (left > 0) note(`cancelled ${counted(left, 'episode')} that an earlier server of this name left`);
  const limits = { maxTurns, agentTimeoutSec: agentTimeout };
  const request = { upstream, sandbox, rewardPolicy, agentOptions, offlineTests, ...limits };
  const episodes = options.episodes ?? stack.config.capacity;
  const environment = createEnvironment({
    tasks,
    tools,
    maxEpisodes: episodes,
    start: createEpisodeStarter(stack.client, request),
  });
  const server = await startOpenEnvServer({
    environment,
    metadata: { name: 'temper', description: `coding tasks of ${options.tasks}`, version: packageVersion() },
    limits: { episodes, idleMs: options.idle * 1000 },
    ...access,
    tls: access.tls?.first ?? null,
    log: { warn: (fields, message) => note(`${message}: ${JSON.stringify(fields)}`) },
  });
  print(server.url);
  note(`serving ${counted(tasks.length, 'task')} to at most ${counted(episodes, 'client')} at once; Ctrl-C ends it`);
  const closing = new AbortController();
  if (access.tls !== null) {
    const { read, first: served } = access.tls;
    void watchListenTls({ read, served, serve: server.serveTls, log: { info: note, warn: note } }, closing.signal);
  }
  await stop;
  closing.abort();
  await server.close();
}

/** Lists the tasks of the set, which the workers of the stack can read. */
async function tasksOf(options: ServeOptions, stack: StackClient): Promise<readonly TaskEntry[]> {
  const { taskSetFor } = await import('../stack/task-set.ts');
  const { openTaskSource } = await import('../stack/task-source.ts');
  const set = await taskSetFor({ tasks: options.tasks, sandbox: options.sandbox }, stack);
  const source = await openTaskSource(set, { ...stack, offline: false });
  const tasks: TaskEntry[] = [];
  try {
    for await (const { id, address } of source.tasks.scan(source.address)) tasks.push({ id, address });
  } catch (error) {
    throw asUsageError(error, '--tasks');
  }
  return tasks;
}

/** Finds this server's entry in upstreams.json, and refuses one that does not lead here. */
async function upstreamOf({ upstream, port }: ServeOptions, config: Config): Promise<UpstreamModel> {
  const { createUpstreams } = await import('../../../infra/gateway/upstream/upstreams.ts');
  const { modelPath } = await import('../../../infra/openenv/server.ts');
  const entry = { [upstream]: { url: `http://127.0.0.1:${port}${modelPath}`, model: 'openenv', namesSession: true } };
  const advice = `${config.upstreams} must have, for a gateway on this machine: ${JSON.stringify(entry)}`;
  const found = await createUpstreams(config.upstreams, config.env)
    .find(upstream)
    .catch((error: unknown) => {
      if (!(error instanceof TemperFailure)) throw error;
      throw new UsageError(`--upstream: ${error.message}; ${advice}`);
    });
  const url = new URL(found.url);
  const isHere = ['127.0.0.1', 'localhost'].includes(url.hostname);
  const given = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  if (!found.namesSession || !url.pathname.replace(/\/$/, '').endsWith(modelPath) || (isHere && given !== port)) {
    throw new UsageError(
      `--upstream: ${upstream} does not lead to this server: it has ${found.url}${found.namesSession ? '' : ' without namesSession'}. ${advice}`,
    );
  }
  return found;
}

/** Returns address and secrets of the server. Throws a UsageError if strangers could reach it. */
async function accessOf(
  { listen, port, tlsCert, tlsKey }: ServeOptions,
  { env }: Config,
  { apiKey, name }: UpstreamModel,
) {
  const token = env.TEMPER_OPENENV_TOKEN ?? null;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new UsageError('--tls-cert and --tls-key: expected both or none, got one');
  }
  const readTls =
    tlsCert === undefined || tlsKey === undefined
      ? null
      : () => readServerTls({ name: '--tls-cert', path: tlsCert }, { name: '--tls-key', path: tlsKey });
  const tls = readTls === null ? null : { read: readTls, first: await readTls().catch(asUsage) };
  if (!isLoopback(listen) && (tls === null || token === null || apiKey === null)) {
    const lacking = [
      ...(tls === null ? ['--tls-cert and --tls-key'] : []),
      ...(token === null ? ['TEMPER_OPENENV_TOKEN'] : []),
      ...(apiKey === null ? [`apiKeyFrom of ${name} in upstreams.json`] : []),
    ];
    throw new UsageError(
      `--listen: ${listen} is reached from other machines, and that needs ${lacking.join(', ')}; set them, or listen on 127.0.0.1`,
    );
  }
  return { listen, port, tls, keys: { client: token, model: apiKey } };
}

function asUsage(error: unknown): never {
  throw new UsageError(errorMessage(error));
}
