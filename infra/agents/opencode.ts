import type { z } from 'zod';
import type { McpServer } from '../harbor/mcp-servers.ts';
import type { AgentContext, AgentSpec } from './agent.ts';
import {
  bunLoader,
  bunSandboxes,
  type CliDependencies,
  homeFiles,
  modelName,
  replyReserve,
  requireGateway,
  secretVariable,
  withInstruction,
} from './cli.ts';
import { hostToolServer, hostToolsUrl, hostToolTimeoutSec } from './host-tools.ts';
import { extraArguments, subAgents, toolNames, toolTimeout } from './options.ts';
import { packageFile } from './packages.ts';

/** The build that runs on processors with and without AVX2. */
const program = packageFile('opencode-linux-x64-baseline/bin/opencode');
const provider = 'temper';

const options = {
  subAgents,
  tools: toolNames
    .optional()
    .describe('The tools that it has by their permission, for example `["bash","read","edit"]`. Default: all.'),
  toolTimeoutSec: toolTimeout.describe('Time limit of a shell command in seconds. Default: its own.'),
  arguments: extraArguments(['--model', '-m', '--attach', '--dir', '--continue', '-c', '--session', '-s']),
} as const;
type Options = z.output<z.ZodObject<typeof options>>;

/** OpenCode, which calls the OpenAI Chat Completions API. */
export function createOpencode({ runtime, packages }: CliDependencies): AgentSpec<typeof options> {
  return {
    name: 'opencode',
    description: 'OpenCode (opencode-ai)',
    usesModel: true,
    needsSolution: false,
    skills: '.agents/skills',
    mcpTransports: ['stdio', 'http', 'sse'],
    takesHostTools: true,
    sandboxes: bunSandboxes,
    loader: bunLoader,
    options,
    runtimes: async () => Promise.all([runtime.prepare(), packages.prepare('opencode')]),
    command(context) {
      const { baseUrl, secret } = requireGateway('opencode', context);
      return {
        argv: withInstruction(baseUrl, [
          program,
          'run',
          '--model',
          `${provider}/${modelName}`,
          ...context.options.arguments,
        ]),
        env: {
          [secretVariable]: secret,
          OPENCODE_DISABLE_AUTOUPDATE: '1',
          OPENCODE_DISABLE_MODELS_FETCH: '1',
          ...timeoutOf(context.options),
        },
        files: homeFiles(context.instruction, {
          '.config/opencode/opencode.json': configuration(baseUrl, context),
        }),
      };
    },
    stopReason: (exitCode) => (exitCode === 0 ? 'submitted' : 'crashed'),
  };
}

function timeoutOf({ toolTimeoutSec }: Options): Record<string, string> {
  if (toolTimeoutSec === undefined) return {};
  return { OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS: String(toolTimeoutSec * 1000) };
}

/** The agent runs unattended and the sandbox confines it: a tool that it has is allowed, and it does not have one that is denied. */
function permissionOf({
  options: { subAgents: agents, tools },
  hostTools = [],
  mcpServers = [],
}: AgentContext<Options>): object {
  const ours = [...hostTools.map((tool) => `${hostToolServer}_${tool}`), ...mcpServers.map(({ name }) => `${name}_*`)];
  const chosen = tools === undefined ? { '*': 'allow' } : { '*': 'deny', ...allowed([...tools, ...ours]) };
  return agents === 'off' ? { ...chosen, task: 'deny' } : chosen;
}

const allowed = (tools: readonly string[]): object => Object.fromEntries(tools.map((tool) => [tool, 'allow']));

const agentsOf = ({ subAgents: agents }: Options): object =>
  typeof agents === 'string'
    ? {}
    : { agent: Object.fromEntries(Object.entries(agents).map(([name, one]) => [name, { mode: 'subagent', ...one }])) };

function serversOf(url: string | null, servers: readonly McpServer[]): object {
  if (url === null && servers.length === 0) return {};
  const headers = { Authorization: `Bearer {env:${secretVariable}}` };
  const timeout = hostToolTimeoutSec * 1000;
  const common = { enabled: true, timeout };
  const mcp = {
    ...(url !== null && { [hostToolServer]: { type: 'remote', url, headers, oauth: false, ...common } }),
    ...Object.fromEntries(
      servers.map((server) => [
        server.name,
        server.transport === 'stdio'
          ? { type: 'local', command: server.command, ...common }
          : { type: 'remote', url: server.url, oauth: false, ...common },
      ]),
    ),
  };
  return { mcp };
}

function configuration(baseUrl: string, context: AgentContext<Options>): string {
  const { contextLength = null, options: chosen } = context;
  return JSON.stringify({
    permission: permissionOf(context),
    ...agentsOf(chosen),
    ...serversOf(hostToolsUrl(baseUrl, context), context.mcpServers ?? []),
    share: 'disabled',
    provider: {
      [provider]: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${baseUrl}/v1`, apiKey: `{env:${secretVariable}}` },
        models: {
          [modelName]:
            contextLength === null ? {} : { limit: { context: contextLength, output: replyReserve(contextLength) } },
        },
      },
    },
  });
}
